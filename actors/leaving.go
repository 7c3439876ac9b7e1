package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// leaving is the last mode of a lock actor that was given up: it refuses what is
// still in its mailbox, and stops when that is empty and the key is released.
type leaving struct {
	reason core.Reason
	detail string
	// sent is how many requests were sent before the gate was closed.
	sent uint64
	// farewell are the commands after which nothing is left in Redis, and releases is how
	// many of them are not known to have been carried out.
	farewell []lastRelease
	releases int
	// gone: the guardian has been asked to stop the actor.
	gone bool
	// moving: requests go back to the guardian, who has another lock actor take them.
	moving bool
}

// giveUp tells everybody that the lock actor has failed them, releases the key, and
// lets the actor leave. It needs nothing of the lock but its lists.
func (c *cell) giveUp(reason core.Reason, detail string) {
	holders, pending := c.lock.Everyone()
	farewell := c.lock.Farewell(c.rt.Now())
	c.renew()
	c.stopAlarm()
	c.rt.table.drop(c)
	c.leaving = &leaving{reason: reason, detail: detail, sent: c.gate.close()}
	for _, command := range farewell {
		c.leaving.farewell = append(c.leaving.farewell, lastRelease{cell: c, command: command, until: c.rt.Now() + command.MaxTTL})
	}

	c.until.Store(0)
	for _, holder := range holders {
		c.perform(&core.Effect{Kind: core.TellLost, Ref: holder.Ref, Answer: core.Answer{HoldID: holder.ID, Reason: reason, Detail: detail}})
	}
	for _, ref := range pending {
		c.perform(&core.Effect{Kind: core.Reply, Ref: ref, Answer: refusal(ref.(requester).asked(), reason, detail)})
	}
	for by := range c.inspections {
		c.perform(&core.Effect{Kind: core.Reply, Ref: by, Answer: refusal(OpInspect, reason, detail)})
	}
	c.inspections = nil
	c.stopListening()
	c.leaving.release()
	c.leaving.check(c)
}

// release has everything released that the lock may hold in Redis.
func (l *leaving) release() {
	l.releases += len(l.farewell)
	for i := range l.farewell {
		l.farewell[i].try()
	}
}

// repliedTooLate handles the reply to a command that was under way when the lock was given
// up. It may have been carried out after the release that was sent then.
func (c *cell) repliedTooLate(r core.Result) {
	if c.leaving != nil && r.Outcome == core.Done {
		c.leaving.release()
	}
}

// receive refuses a request.
func (l *leaving) receive(c *cell, m any, sender *actor.PID) {
	if _, stopping := m.(*actor.Stopping); stopping {
		return
	}
	c.accepted = m
	if late, ok := m.(*replied); ok {
		c.repliedTooLate(late.result)
	}
	if !l.moving || !isRequest(m) {
		c.refuse(m, sender, l.reason, l.detail)
	} else if !c.rt.deliver(c.rt.guardian, &admitted{key: c.key, message: m, sender: sender}) {
		c.rt.tooLate(m, sender)
	}
	l.check(c)
}

// abandon stops waiting for Redis; the requests that are on their way are still refused.
func (l *leaving) abandon(c *cell) {
	l.releases = 0
	l.check(c)
}

// check leaves as soon as nothing is owed to anybody.
func (l *leaving) check(c *cell) {
	if l.releases <= 0 && c.seen >= l.sent && !l.gone {
		l.gone = true
		c.rt.deliver(c.rt.guardian, &retired{cell: c})
	}
}

// lastRelease frees a term's key without the help of its actor, trying again until
// the key would have expired anyway.
type lastRelease struct {
	cell    *cell
	command core.Command
	until   core.Instant
}

// lastPause lies between two tries of a lastRelease.
const lastPause = 200 * time.Millisecond

func (r *lastRelease) try() {
	c := r.cell
	deadline := time.Now().Add(c.rt.cfg.CallTimeout)
	if c.target != nil {
		c.target.run(r.command, deadline, func(v verdict) { r.tried(v.Result) })
		return
	}
	call := c.wire.Call(&r.command, deadline)
	call.To = r
	c.rt.redis.Run(call)
}

// Replied implements redisio.Receiver.
func (r *lastRelease) Replied(tag uint64, reply redisio.Reply) {
	_, result := r.cell.wire.Read(tag, reply)
	r.tried(result)
}

func (r *lastRelease) tried(result core.Result) {
	c := r.cell
	if result.Outcome == core.Failed {
		if result.Transient && c.rt.Now() < r.until {
			time.AfterFunc(lastPause, r.again)
			return
		}
		c.rt.leaveBehind(r.until)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving.releases--
	c.leaving.check(c)
}

// again tries under the lock of the cell, as the first try is made.
func (r *lastRelease) again() {
	r.cell.mu.Lock()
	defer r.cell.mu.Unlock()
	r.try()
}
