package actors

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// commandBits is how much of a redisio sequence number says which command it was.
const commandBits = 3

// replied brings the outcome of a command back to its lock actor.
type replied struct {
	tag   uint64
	reply redisio.Reply
}

// Replied implements redisio.Receiver, on a goroutine of its pool.
func (c *cell) Replied(tag uint64, reply redisio.Reply) {
	c.rt.deliver(c.pid, &replied{tag: tag, reply: reply})
}

// result reads the reply of a script as what it means to the lock.
func (c *cell) result(m *replied) (seq uint64, r core.Result) {
	seq = m.tag >> commandBits
	if err := m.reply.Err; err != nil {
		return seq, core.Result{Outcome: core.Failed, Err: err, Transient: err.Transient, Unsure: err.Unsure}
	}
	n := m.reply.N
	r.Outcome = core.Done
	switch core.CommandKind(m.tag & (1<<commandBits - 1)) {
	case core.Acquire:
		switch {
		case m.reply.Nil:
		case n[0] == -2:
			r.Outcome = core.Absent
		default:
			r.Outcome = core.Refused
			r.TTL = time.Duration(n[0]) * time.Millisecond
			r.Holder = m.reply.S[0]
			r.OwnTerm = c.rt.ownTerm(r.Holder)
		}
	case core.Release:
		if n[0] < 0 {
			r.Outcome = core.Absent
		}
	case core.Renew:
		if n[0] != 1 {
			r.Outcome, r.Taken = core.Absent, n[0] < 0
		}
	case core.Yield:
		switch n[0] {
		case -1:
			r.Outcome = core.Absent
		case 0:
			r.Outcome = core.Kept
		default:
			r.Others = int(n[1])
		}
	case core.ForceRelease:
		r.WasHeld = n[0] == 1
	}
	return seq, r
}
