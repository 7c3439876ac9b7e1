package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// waiter is a request that waits, or is about to.
type waiter struct {
	machine.Request
	// term is the term of its entry in a fair lock's queue, if it has one.
	term uint64
}

// dropExpired refuses waiters whose wait is over. If there are more than MaxExpired, the next Tick is due at once.
func (l *Lock) dropExpired() {
	expired := func(req *waiter) bool { return req.Deadline > 0 && l.now >= req.Deadline }
	for _, req := range append(l.queue.RemoveExpired(l.now, machine.MaxExpired), l.withdrawReentries(expired)...) {
		a := machine.Answer{Kind: machine.NotGranted, Reason: machine.TimedOut, TTL: l.wait.ttl(l), Detail: l.heldBy()}
		switch {
		case l.wait.unconfirmed:
			a.Reason, a.Detail = machine.NotReplicated, l.wait.LastErr
		case l.wait.LastErr != "":
			a.Reason, a.Detail = machine.Unavailable, l.wait.LastErr
		case req.Try, l.phase == contending && !l.wait.Refused, l.phase == releasing: // the state of the lock is not known
			a.Reason, a.Detail = machine.Unavailable, l.cfg.NoAnswer()
		}
		l.answer(req.Ref, a)
	}
}

// refuseTries refuses the waiters that wait for one reply only.
func (l *Lock) refuseTries(reason machine.Reason, detail string) {
	for _, req := range l.queue.RemoveTries(func(*waiter) bool { return true }) {
		l.refuse(req.Ref, reason, detail)
	}
}

// withdraw removes and returns the request with that id or, if id is 0, the requests of the owner.
func (l *Lock) withdraw(id uint64, owner machine.Owner) []*waiter {
	matches := func(req *waiter) bool { return req.ID == id || id == 0 && owner != 0 && req.Owner == owner }
	return append(l.queue.Withdraw(id, uint64(owner)), l.withdrawReentries(matches)...)
}

// withdrawReentries removes and returns the re-entries that match: those that wait, and the one under way.
func (l *Lock) withdrawReentries(match func(*waiter) bool) []*waiter {
	all := l.withdrawPending(match)
	if l.main.kind == opCount && l.main.request != nil && match(l.main.request) {
		all = append(all, l.main.request)
		l.main.request = nil
	}
	return all
}

// withdrawPending removes and returns the waiting re-entries that match.
func (l *Lock) withdrawPending(match func(*waiter) bool) (all []*waiter) {
	for _, c := range l.takePending(func(c countChange) bool { return c.request != nil && match(c.request) }) {
		all = append(all, c.request)
	}
	return all
}

// held returns the answer to a request that only tries, and would have to wait.
func (l *Lock) held() machine.Answer {
	return machine.Answer{Kind: machine.NotGranted, Reason: machine.Held, TTL: l.wait.ttl(l), Detail: l.heldBy()}
}

// heldBy describes why the waiters wait, after a reason such as "lock is held".
func (l *Lock) heldBy() string {
	if l.holds.len() > 0 {
		return "the holder is in this process"
	}
	if l.wait.holder != "" {
		return "the holder is " + l.wait.holder + "; see lockkeeper inspect" // which asks Redis for its process
	}
	return "others wait for the lock already"
}

// ttl returns the rest of the lease that the waiters wait for; negative if not known.
func (w *waiting) ttl(l *Lock) time.Duration {
	switch {
	case l.holds.len() > 0:
		return max(l.lease.until-l.now, 0)
	case w.holder == "" || w.freeAt == 0:
		return -1
	}
	return max(w.freeAt-l.now, 0)
}
