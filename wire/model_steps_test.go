package wire_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

const (
	clients = 3
	terms   = 3
)

func (s *sequence) chance(percent int) bool { return s.choices.IntN(100) < percent }

func (s *sequence) lease() time.Duration { return leases[s.choices.IntN(len(leases))] }

func (s *sequence) client() model.Client { return model.Client(s.choices.IntN(clients)) }

func (s *sequence) term() uint64 { return 1 + s.choices.Uint64N(terms) }

// someone is an owner: often one who holds the lock, since the others are refused most.
func (s *sequence) someone() model.Owner {
	holders := s.model.Part(s.choices.IntN(len(s.setup.Kinds))).Holders()
	if len(holders) > 0 && s.chance(60) {
		return holders[s.choices.IntN(len(holders))].Owner
	}
	return model.Owner{Client: s.client(), Term: s.term()}
}

// step lets one thing happen on both sides.
func (s *sequence) step(t *testing.T) error {
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
		s.real.do(t, "DEL", s.locks.members[0][part].Key)
	case n < 23:
		s.tell("all keys are deleted")
		s.model.Flush()
		s.real.do(t, "FLUSHDB")
	default:
		return s.someCommand(t)
	}
	return nil
}

// subscription lets a client come to a channel, or leave it: to the lock's own, of all
// parts that have one, or to that of one of its waiters.
func (s *sequence) subscription(t *testing.T) {
	t.Helper()
	c := s.client()
	var channel model.Owner
	if slices.Contains(s.setup.Kinds, model.Fair) && s.chance(80) {
		channel = model.Owner{Client: c, Term: s.term()}
	}
	comes := !s.model.Hears(c, model.Publication{To: channel})
	if comes {
		s.model.Subscribe(c, channel)
	} else {
		s.model.Unsubscribe(c, channel)
	}
	for _, name := range s.locks.channels(channel) {
		s.tell("client %d comes to %s: %v", c, name, comes)
		s.real.listen(t, c, name, comes)
		s.real.await(t, name, s.model.Subscribers(channel))
	}
}

// someCommand sends a command of those that are sent to this kind of lock.
func (s *sequence) someCommand(t *testing.T) error {
	t.Helper()
	kind, part := s.setup.Kinds[0], -1
	who := s.someone()
	c := core.Command{Term: who.Term, Lease: s.lease()}
	several := len(s.setup.Kinds) > 1
	acquire := 45
	switch {
	case several && s.chance(35):
		s.take(&c)
		c.Tokens = max(c.Tokens, 1) // a MultiLock always draws what its members have
	case several:
		part = s.choices.IntN(len(s.setup.Kinds))
		kind = s.setup.Kinds[part]
		fallthrough
	case kind == model.Fair:
		if kind == model.Fair && s.chance(65) {
			s.enrol(&c)
			break
		}
		fallthrough
	default:
		if several {
			acquire = 20
		}
		s.plain(&c, kind, acquire, several || kind == model.Fair)
	}
	s.tell("client %d, part %d: %+v", who.Client, part, c)
	return s.command(t, who.Client, part, c)
}

// take is the acquire of a term that may be new.
func (s *sequence) take(c *core.Command) {
	c.Kind, c.Count, c.Tokens = core.Acquire, 1, s.choices.Int64N(4)
}

// plain is a command that says what is to become of its own term. Nobody yields a part,
// nor a fair lock.
func (s *sequence) plain(c *core.Command, kind model.Kind, acquire int, keeps bool) {
	switch n := s.choices.IntN(100); {
	case n < acquire:
		s.take(c)
		if s.chance(40) {
			c.Count, c.Tokens = 1+s.choices.IntN(3), s.choices.Int64N(2)
		}
		s.share(c, kind)
	case n < acquire+20:
		if c.Kind = core.Release; s.chance(40) {
			c.Count = 1 + s.choices.IntN(3)
			s.share(c, kind)
		}
	case n < acquire+33:
		c.Kind = core.Renew
	case n < acquire+40:
		c.Kind, c.Mode = core.ForceRelease, core.Mode(s.choices.IntN(2))
	case kind == model.ReadWrite && s.chance(30):
		c.Kind, c.Subscribed = core.Look, s.chance(30)
	case keeps:
		c.Kind = core.Renew
	default:
		c.Kind, c.Subscribed, c.Open = core.Yield, s.chance(40), s.chance(30)
	}
}

// share gives a command about a read/write lock counts of its own.
func (s *sequence) share(c *core.Command, kind model.Kind) {
	if kind != model.ReadWrite {
		return
	}
	switch s.choices.IntN(4) {
	case 0, 1:
		c.Count, c.Shared = 0, c.Count
	case 2:
		c.Shared = s.choices.IntN(3)
	}
	c.Announce = c.Kind == core.Acquire && c.Count > 0 && s.chance(60)
}

// enrol is a command about the queue.
func (s *sequence) enrol(c *core.Command) {
	c.Kind, c.Take, c.Top = core.Enrol, s.chance(60), s.choices.Uint64N(terms+1)
	if s.chance(60) {
		c.Term = 0
	}
	for term := range uint64(terms) {
		if s.chance(60) {
			c.Entries = append(c.Entries, core.Entry{Term: term + 1, Lease: s.lease(), Try: s.chance(15)})
		}
	}
}
