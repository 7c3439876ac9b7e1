package actors

import (
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// inspect asks Redis about the lock.
func (c *cell) inspect(source any, by requester) {
	c.accepted = source
	if c.inspections == nil {
		c.inspections = map[requester]struct{}{}
	}
	c.inspections[by] = struct{}{}
	c.setAlarm()
	deadline := time.Now().Add(c.rt.cfg.CallTimeout)
	seen := func(v wire.View, err error) { c.rt.deliver(c.pid, &inspection{by: by, view: v, err: err}) }
	if c.target != nil {
		c.target.inspect(deadline, seen)
		return
	}
	call := c.wire.Inspect(deadline)
	call.To = viewReply{lock: c.wire, done: seen}
	c.rt.redis.Run(call)
}

// inspected adds to Redis's words what only this process knows.
func (c *cell) inspected(m *inspection) {
	c.accepted = m
	if _, owed := c.inspections[m.by]; !owed {
		return
	}
	delete(c.inspections, m.by)
	defer c.carryOut()
	if m.err != nil {
		reason := core.Rejected
		if err := (*redisio.Error)(nil); errors.As(m.err, &err) && err.Transient {
			reason = core.Unavailable
		}
		m.by.answered(c, core.Answer{Kind: core.NotDone, Reason: reason, Detail: m.err.Error()})
		return
	}
	here, there := c.lock.Snapshot(), m.view
	status := &messages.Status{
		Locked: there.Locked, HeldHere: here.HeldHere, Holder: there.Holder, HoldCount: int64(there.Count), Ttl: duration(there.TTL),
		Waiters: int64(here.Waiters), Subscribers: int64(there.Subscribers), Mode: messages.Mode(there.Mode), Holders: int64(there.Holders),
	}
	if len(here.Tokens) > 0 && c.target == nil {
		status.Token = here.Tokens[0]
	}
	m.by.inspected(c, status)
}
