package actors

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// send has a command of the lock run in Redis; the reply comes back as a message.
func (c *cell) send(command core.Command) {
	deadline := c.rt.callBy(command.Deadline)
	if c.target != nil {
		c.sendTo(c.target, command, deadline)
		return
	}
	if command.Kind == core.Renew {
		renewal := c.wire.Renewal(&command, deadline)
		renewal.To = c
		c.rt.redis.Renew(renewal)
		return
	}
	if command.Kind == core.Yield || command.Kind == core.Look {
		// The subscription is the system's: it lingers when the lock does not listen any
		// more, and others here that wait too have the same one.
		command.Subscribed = c.rt.channels.subscribed(c.wire.Channel) && !c.rt.channels.shared(c, c.wire.Channel)
	}
	call := c.wire.Call(&command, deadline)
	call.To = c
	if !c.lent(&command, &call) {
		c.rt.redis.Run(call)
	}
}

// lent has a call run on the goroutine of a caller that still waits for its answer: of
// the one whose request this is about, or of the one who waits for its outcome. It
// reports whether there is one.
func (c *cell) lent(command *core.Command, call *redisio.Call) bool {
	lender, waiting := c.lender, false
	if lender == nil && (command.Kind == core.Acquire || command.Kind == core.Enrol) {
		lender, waiting = c.lock.Next().(*Call)
	}
	if lender == nil || !lender.lends || !c.rt.borrow() {
		return false
	}
	if !lender.slot.lend(&loan{rt: c.rt, call: *call}, waiting) {
		c.rt.lenders.Add(-1)
		return false
	}
	c.lender = nil
	return true
}

// sendTo has a command run on a lock of several parts.
func (c *cell) sendTo(t target, command core.Command, deadline time.Time) {
	if command.Kind == core.Acquire {
		c.told = nil
	}
	t.run(command, deadline, func(v verdict) {
		c.replied(&replied{cell: c, seq: command.Seq, result: v.Result, busy: v.busy})
	})
}

// Replied implements redisio.Receiver, on a goroutine of its pool.
func (c *cell) Replied(tag uint64, reply redisio.Reply) {
	seq, result := c.wire.Read(tag, reply)
	c.replied(&replied{cell: c, seq: seq, result: result})
}

// replied brings a reply to the lock actor, or what is left of it.
func (c *cell) replied(m *replied) {
	if !c.rt.deliver(c.pid, m) {
		go m.tooLate() // the goroutine may hold the cell's mutex
	}
}

func (m *replied) tooLate() {
	m.cell.mu.Lock()
	defer m.cell.mu.Unlock()
	m.cell.repliedTooLate(m.result)
}

// replied brings the outcome of a command back to its lock actor.
type replied struct {
	cell   *cell
	seq    uint64
	result core.Result
	busy   []ear
}

// ears are where the release of the lock is told to a waiter of that term.
func (c *cell) ears(term uint64) []ear {
	if c.target != nil {
		return c.target.ears()
	}
	return []ear{{c.rt, c.wire.ChannelOf(term)}}
}

func (c *cell) listen(term uint64) {
	c.heard = c.ears(term)
	for _, e := range c.heard {
		e.rt.deliver(e.rt.subscriber, &subscribe{cell: c, channel: e.channel, term: term})
	}
}

func (c *cell) stopListening() {
	for _, e := range c.heard {
		e.rt.deliver(e.rt.subscriber, &unsubscribe{cell: c, channel: e.channel})
	}
	c.heard = nil
}

// minds reports whether what happens on a channel may mean that the lock is free. If not,
// it takes note: a try may be under way that is refused because of that very part.
func (c *cell) minds(e ear) bool {
	if c.target == nil || slices.Contains(c.busy, e) {
		return true
	}
	if !c.toldOf(e) {
		c.told = append(c.told, e)
	}
	return false
}

func (c *cell) toldOf(e ear) bool { return slices.Contains(c.told, e) }
