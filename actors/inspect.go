package actors

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// inspect asks Redis about the lock.
func (c *cell) inspect(source any, by requester) {
	c.accepted = source
	if c.inspections == nil {
		c.inspections = map[requester]struct{}{}
	}
	c.inspections[by] = struct{}{}
	c.setTimer()
	c.rt.redis.Run(redisio.Call{
		Script: scripts.Inspect, Keys: c.keys, Deadline: time.Now().Add(c.rt.cfg.CallTimeout), To: &inspector{cell: c, by: by},
	})
}

// inspector brings the reply back.
type inspector struct {
	cell *cell
	by   requester
}

func (i *inspector) Replied(_ uint64, reply redisio.Reply) {
	i.cell.rt.deliver(i.cell.pid, &inspection{by: i.by, reply: reply})
}

// inspected adds to Redis's words what only this process knows.
func (c *cell) inspected(m *inspection) {
	c.accepted = m
	if _, owed := c.inspections[m.by]; !owed {
		return
	}
	delete(c.inspections, m.by)
	defer c.carryOut()
	if err := m.reply.Err; err != nil {
		reason := core.Rejected
		if err.Transient {
			reason = core.Unavailable
		}
		m.by.answered(c, core.Answer{Kind: core.NotDone, Reason: reason, Detail: err.Error()})
		return
	}
	here := c.lock.Snapshot()
	ttl := m.reply.N[0]
	status := &messages.Status{
		Locked: ttl != -2, HeldHere: here.HeldHere, Holder: m.reply.S[0],
		Waiters: int64(here.Waiters), Subscribers: m.reply.N[1],
	}
	status.HoldCount, _ = strconv.ParseInt(m.reply.S[1], 10, 64)
	if ttl >= 0 {
		status.Ttl = durationpb.New(time.Duration(ttl) * time.Millisecond)
	}
	m.by.inspected(c, status)
}
