package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// A request may ask for a lock to be held for a minimum time: a job that takes a moment then runs once, although the
// clocks of the processes that start it differ. If its hold ends before that time, the lock is not released. Its key is
// left to expire instead, and no process needs to be alive for that.

// keep leaves the key to expire at that time. No waiter of this process gets the lease before that time.
func (l *Lock) keep(ref any, until machine.Instant) {
	l.phase = releasing
	l.renewal = renewal{}
	l.start(op{kind: opKeep, ref: ref, until: l.longestTTL(), particulars: particulars{keepUntil: until}})
}

// keepCommand fills in a command that sets the TTL to the rest of the minimum time, or releases the lock if no time is
// left.
func (l *Lock) keepCommand(o *op, c *Command) {
	rest := o.keepUntil - l.now
	if rest <= 0 {
		o.kind, o.lease = opRelease, l.cfg.Watchdog
		l.releaseCommand(o, c)
		return
	}
	o.lease = rest + machine.Margin(rest) // the clock of Redis may be faster
	c.Kind = Keep
}

// noteMinimum notes the minimum time of a request that is granted now. A re-entry can only prolong the minimum time of
// its hold.
func (h *hold) noteMinimum(req *waiter, now machine.Instant, reenters bool) {
	if req.AtLeast == 0 {
		return
	}
	h.keepUntil = max(h.keepUntil, now+req.AtLeast)
	if reenters {
		h.keepAgainUntil = max(h.keepAgainUntil, now+req.AtLeast)
	}
}
