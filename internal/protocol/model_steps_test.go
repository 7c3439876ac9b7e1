package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

const (
	clients = 3
	terms   = 3
)

func (s *sequence) chance(percent int) bool { return s.choices.IntN(100) < percent }

func (s *sequence) lease() time.Duration { return leases[s.choices.IntN(len(leases))] }

func (s *sequence) client() redismodel.Client { return redismodel.Client(s.choices.IntN(clients)) }

func (s *sequence) term() uint64 { return 1 + s.choices.Uint64N(terms) }

// someone is an owner: often one who holds the lock, since the others are refused most.
func (s *sequence) someone() redismodel.Owner {
	holders := s.model.Part(s.choices.IntN(len(s.setup.Kinds))).Holders
	if len(holders) > 0 && s.chance(60) {
		return holders[s.choices.IntN(len(holders))].Owner
	}
	return redismodel.Owner{Client: s.client(), Term: s.term()}
}

// step lets one thing happen on both sides, and tells what the model says was published.
func (s *sequence) step(t *testing.T) (told []redismodel.Publication, err error) {
	t.Helper()
	switch n := s.choices.IntN(100); {
	case n < 10:
		d := jumps[s.choices.IntN(len(jumps))]
		s.tell("%v pass", d)
		s.now += d
		s.model.At(s.now)
		s.real.pass(t, d)
	case n < 20:
		s.subscription(t)
	case n < 22:
		part := s.choices.IntN(len(s.setup.Kinds))
		s.tell("the key of part %d is deleted", part)
		s.model.Delete(part)
		s.real.Do(t, "DEL", s.members[0][part].Key)
	case n < 23:
		s.tell("all keys are deleted")
		s.model.Flush()
		s.real.Do(t, "FLUSHDB")
	default:
		return s.command(t)
	}
	return nil, nil
}

// subscription lets a client come to a channel, or leave it: to the lock's own, of all
// parts that have one, or to that of one of its waiters.
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
	comes := !slices.Contains(s.model.Hearers(redismodel.Publication{To: channel}), c)
	s.tell("client %d comes to the channel of %v: %v", c, channel, comes)
	if comes {
		s.model.Subscribe(c, channel)
	} else {
		s.model.Unsubscribe(c, channel)
	}
	if channel == redismodel.TurnChannel(c) {
		s.real.subscribe(t, c, s.channel(0, channel), comes)
		return
	}
	for part, kind := range s.setup.Kinds {
		if (kind == redismodel.Fair) == (channel.Client >= 0 && channel.Term != 0) {
			s.real.subscribe(t, c, s.channel(part, channel), comes)
		}
	}
}

// command sends a command of those that are sent to this kind of lock. Nobody yields a part,
// nor a fair lock.
func (s *sequence) command(t *testing.T) ([]redismodel.Publication, error) {
	t.Helper()
	who, kind, part, acquire := s.someone(), s.setup.Kinds[0], -1, 45
	c := lock.Command{Term: who.Term, Lease: s.lease()}
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
		// A MultiLock always draws what its members have.
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
		c.Kind = lock.Renew
	case n < acquire+40:
		c.Kind, c.Mode = lock.ForceRelease, lock.Mode(s.choices.IntN(2))
		for range s.choices.IntN(4) {
			c.Owners = append(c.Owners, s.setup.Name(s.someone()))
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
		s.place(who, &c)
	}
	if c.Tokens > 0 && s.chance(40) {
		for range s.setup.Kinds {
			c.Above = append(c.Above, s.choices.Int64N(40))
		}
	}
	s.tell("client %d, part %d: %+v", who.Client, part, c)
	return s.run(t, who.Client, part, c)
}

// place has a command take a place in the line. Who yields, waits under a later term.
func (s *sequence) place(who redismodel.Owner, c *lock.Command) {
	c.Notified = s.chance(30)
	later := who.Term
	switch {
	case s.chance(25):
		return
	case c.Kind == lock.Yield:
		for later++; s.model.Part(0).Of(redismodel.Owner{Client: who.Client, Term: later}) != (redismodel.Counts{}); later++ {
		}
	case c.Kind != lock.Acquire || c.Count+c.Shared != 1:
		return
	}
	c.Entry = lock.Entry{Term: later, TTL: []time.Duration{18 * time.Second, 26 * time.Second}[s.choices.IntN(2)], Listens: s.chance(85)}
	c.Entry.Reserves = len(s.setup.Kinds) > 1
	switch {
	case c.Kind == lock.Yield && s.setup.Kinds[0] == redismodel.ReadWrite, len(s.setup.Kinds) > 1:
		c.Entry.Mode = lock.Mode(s.choices.IntN(2))
	case s.setup.Kinds[0] == redismodel.ReadWrite:
		c.Entry.Mode = lock.Mode(c.Shared)
	default:
		c.Entry.Tokens = s.choices.Int64N(3)
	}
}

// syncQueue is a command about the queue.
func (s *sequence) syncQueue(c *lock.Command) {
	c.Kind, c.Take, c.Top = lock.SyncQueue, s.chance(60), s.choices.Uint64N(terms+1)
	if s.chance(60) {
		c.Term = 0
	}
	for term := range uint64(terms) {
		if s.chance(60) {
			c.Entries = append(c.Entries, lock.QueueEntry{Term: term + 1, Lease: s.lease(), Try: s.chance(15)})
		}
	}
}
