package backend

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// batch is several locks in one slot of one Redis, which one script takes.
type batch struct {
	multiLock
	members []*member
}

func newBatch(members []*member) *batch {
	b := &batch{members: members}
	for _, m := range members {
		b.parts = append(b.parts, m)
	}
	return b
}

func (b *batch) run(c lock.Command, deadline time.Time, done func(Reply)) {
	var call redisclient.Call
	switch {
	case c.Kind == lock.Acquire && c.Count == 1:
		call = b.call(protocol.AcquireAll, &c, deadline)
		call.To = b.read(b.members[0].timeAnswer(deadline, done))
	case c.Kind == lock.Yield && !b.fair():
		call = b.call(protocol.YieldAll, &c, deadline)
		call.To = b.members[0].read(done)
	default:
		b.multiLock.run(c, deadline, done)
		return
	}
	b.members[0].server.redis.Run(call)
}

func (b *batch) onlyServer() *Server { return b.members[0].server }

// fair reports whether one of the members is a fair lock.
func (b *batch) fair() bool {
	return slices.ContainsFunc(b.members, func(m *member) bool { return m.wire.Form.Queue != nil })
}

// call makes a call about all members. The first member returns the owner of the term.
func (b *batch) call(of func([]protocol.Member, *lock.Command, time.Time) redisclient.Call,
	c *lock.Command, deadline time.Time) redisclient.Call {
	members := make([]protocol.Member, len(b.members))
	for i, m := range b.members {
		members[i] = m.wire
	}
	b.members[0].mu.Lock()
	defer b.members[0].mu.Unlock()
	return of(members, c, deadline)
}

func (b *batch) read(done func(Reply)) receive {
	return func(_ uint64, reply redisclient.Reply) {
		r := Reply{Result: b.members[0].lock.Read(reply)}
		if i := protocol.Refuser(reply); r.Outcome == lock.Refused && i >= 0 && i < len(b.members) {
			r.Busy = b.members[i].channels()
		}
		done(r)
	}
}
