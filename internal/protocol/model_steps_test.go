package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

const (
	clients = 3
	terms   = 3
)

func (s *sequence) chance(percent int) bool { return s.choices.IntN(100) < percent }

func (s *sequence) lease() time.Duration { return leases[s.choices.IntN(len(leases))] }

func (s *sequence) client() redismodel.Client { return redismodel.Client(s.choices.IntN(clients)) }

func (s *sequence) term() uint64 { return 1 + s.choices.Uint64N(terms) }

// anOwner returns a random owner: often a holder, since other owners are usually refused.
func (s *sequence) anOwner() redismodel.Owner {
	holders := s.model.Part(s.choices.IntN(len(s.setup.Kinds))).Holders
	if len(holders) > 0 && s.chance(60) {
		return holders[s.choices.IntN(len(holders))].Owner
	}
	return redismodel.Owner{Client: s.client(), Term: s.term()}
}

// step runs one random step on both sides, and returns what the model publishes.
func (s *sequence) step(t *testing.T) (published []redismodel.Publication, err error) {
	t.Helper()
	switch n := s.choices.IntN(100); {
	case n < 10:
		d := jumps[s.choices.IntN(len(jumps))]
		s.note("%v pass", d)
		s.now += d
		s.model.At(s.now)
		s.real.pass(t, d)
	case n < 20:
		s.subscription(t)
	case n < 22:
		part := s.choices.IntN(len(s.setup.Kinds))
		s.note("the key of part %d is deleted", part)
		s.model.Delete(part)
		s.real.Do(t, "DEL", s.members[0][part].Key())
	case n < 23:
		s.note("all keys are deleted")
		s.model.Flush()
		s.real.Do(t, "FLUSHDB")
	default:
		return s.command(t)
	}
	return nil, nil
}

// subscription subscribes a client to a channel, or ends its subscription: to the channels of all parts, or to
// the channel of a waiter.
func (s *sequence) subscription(t *testing.T) {
	t.Helper()
	c := s.client()
	var channel redismodel.Owner
	switch n := s.choices.IntN(100); {
	case slices.Contains(s.setup.Kinds, redismodel.Fair) && n < 80:
		channel = redismodel.Owner{Client: c, Term: s.term()}
	case n < 30:
		channel = redismodel.Waiters
	case n < 70:
		channel = redismodel.TurnChannel(c)
	}
	on := !slices.Contains(s.model.Hearers(redismodel.Publication{To: channel}), c)
	s.note("client %d subscribes to the channel of %v: %v", c, channel, on)
	if on {
		s.model.Subscribe(c, channel)
	} else {
		s.model.Unsubscribe(c, channel)
	}
	if channel == redismodel.TurnChannel(c) {
		s.real.subscribe(t, c, s.channel(0, channel), on)
		return
	}
	for part, kind := range s.setup.Kinds {
		if (kind == redismodel.Fair) == (channel.Client >= 0 && channel.Term != 0) {
			s.real.subscribe(t, c, s.channel(part, channel), on)
		}
	}
}

// command runs a random command that fits the kind of lock. Parts and fair locks are never yielded.
func (s *sequence) command(t *testing.T) ([]redismodel.Publication, error) {
	t.Helper()
	owner, kind, part, acquire := s.anOwner(), s.setup.Kinds[0], -1, 45
	c := lock.Command{Term: owner.Term, Lease: s.lease()}
	several := len(s.setup.Kinds) > 1
	whole := several && s.chance(35)
	if several && !whole {
		part, acquire = s.choices.IntN(len(s.setup.Kinds)), 20
		kind = s.setup.Kinds[part]
	}
	switch n := s.choices.IntN(100); {
	case whole && s.chance(30) && !slices.Contains(s.setup.Kinds, redismodel.Fair):
		c.Kind = lock.Yield
	case whole:
		// A MultiLock always draws tokens for its members.
		c.Kind, c.Count, c.Tokens = lock.Acquire, 1, 1+s.choices.Int64N(3)
	case kind == redismodel.Fair && s.chance(65):
		s.syncQueue(&c)
	case n < acquire:
		if c.Kind, c.Count, c.Tokens = lock.Acquire, 1, s.choices.Int64N(4); s.chance(40) {
			c.Count, c.Tokens = 1+s.choices.IntN(3), s.choices.Int64N(2)
		}
	case n < acquire+20:
		if c.Kind = lock.Release; s.chance(40) {
			c.Count = 1 + s.choices.IntN(3)
		}
	case n < acquire+33:
		keeps := kind == redismodel.Plain || kind == redismodel.Fenced || kind == redismodel.Fair
		if c.Kind = lock.Renew; keeps && s.chance(30) {
			c.Kind = lock.Keep
		}
	case n < acquire+40:
		c.Kind, c.Mode = lock.ForceRelease, machine.Mode(s.choices.IntN(2))
		for range s.choices.IntN(4) {
			c.Owners = append(c.Owners, s.setup.Name(s.anOwner()))
		}
	case kind == redismodel.ReadWrite && s.chance(30):
		c.Kind = lock.CountWaiters
	case several, kind == redismodel.Fair:
		c.Kind = lock.Renew
	default:
		c.Kind, c.Forced = lock.Yield, s.chance(30)
	}
	if kind == redismodel.ReadWrite && c.Count > 0 {
		switch s.choices.IntN(4) {
		case 0, 1:
			c.Count, c.Shared = 0, c.Count
		case 2:
			c.Shared = s.choices.IntN(3)
		}
	}
	if several || kind != redismodel.Fair {
		s.addEntry(owner, &c)
	}
	if c.Tokens > 0 && s.chance(40) {
		for range s.setup.Kinds {
			c.Above = append(c.Above, s.choices.Int64N(40))
		}
	}
	s.note("client %d, part %d: %+v", owner.Client, part, c)
	return s.run(t, owner.Client, part, c)
}

// addEntry lets a command add an entry to the wait queue. After a yield, the entry has a later term.
func (s *sequence) addEntry(owner redismodel.Owner, c *lock.Command) {
	c.Notified = s.chance(30)
	later := owner.Term
	switch {
	case s.chance(25):
		return
	case c.Kind == lock.Yield:
		for later++; s.model.Part(0).Of(redismodel.Owner{Client: owner.Client, Term: later}) != (redismodel.Counts{}); later++ {
		}
	case c.Kind != lock.Acquire || c.Count+c.Shared != 1:
		return
	}
	c.Entry = lock.Entry{Term: later, TTL: []time.Duration{18 * time.Second, 26 * time.Second}[s.choices.IntN(2)], Listens: s.chance(85)}
	if c.Entry.Reserves = len(s.setup.Kinds) > 1; c.Entry.Reserves && c.Kind == lock.Acquire && s.chance(50) {
		c.Entry.Waited = time.Duration(5+10*s.choices.IntN(5)) * time.Second
	}
	switch {
	case c.Kind == lock.Yield && s.setup.Kinds[0] == redismodel.ReadWrite, len(s.setup.Kinds) > 1:
		c.Entry.Mode = machine.Mode(s.choices.IntN(2))
	case s.setup.Kinds[0] == redismodel.ReadWrite:
		c.Entry.Mode = machine.Mode(c.Shared)
	default:
		c.Entry.Tokens = s.choices.Int64N(3)
	}
}

// syncQueue makes a random SyncQueue command.
func (s *sequence) syncQueue(c *lock.Command) {
	c.Kind, c.Take, c.Top = lock.SyncQueue, s.chance(60), s.choices.Uint64N(terms+1)
	if s.chance(60) {
		c.Term = 0
	}
	if !c.Take {
		c.Behind = s.choices.Uint64N(terms + 1)
	}
	for term := range uint64(terms) {
		if s.chance(60) {
			c.Entries = append(c.Entries, lock.QueueEntry{Term: term + 1, Lease: s.lease(), Try: s.chance(15)})
		}
	}
}
