package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// A lease may linger in the process after its last hold, for Config.Linger: the next request of the process then needs
// no command. The first process that waits, and every process that tries once, asks the holder's process for the lock,
// which then releases it at once. A process that was waiting before does not ask, so the lease lingers only if the wait
// queue was empty when the lease was taken. A client that does not ask, or whose message gets lost, waits at most until
// lingerUntil, which no use of the lease postpones.

// noteAlone begins the time in which the lease may linger; o has taken the lease.
func (l *Lock) noteAlone(o op, r Result) {
	if r.Alone && !l.lease.asked {
		l.lease.lingerUntil = o.sentAt + l.cfg.Linger
	}
}

// Asked reports that another process wants the lock that this process has with that term. The message may overtake the
// reply to the acquire.
func (l *Lock) Asked(now machine.Instant, term uint64) {
	defer l.begin(now).settle()
	if term == l.lease.term {
		l.lease.lingerUntil, l.lease.asked = 0, true
	}
}

// lingers reports whether the lease remains without a hold and without a waiter, since the process may want it again.
// The lease, as Redis has it now, must suit the next hold without a command.
func (l *Lock) lingers() bool {
	return l.phase == owned && l.holds.len() == 0 && l.queue.Len() == 0 && l.main.kind == opNone && l.now < l.lingerEnd() &&
		!l.closing && !l.suspected && !l.lease.fixed && l.lease.counts == once(machine.Exclusive) &&
		!l.lease.isInDoubt(l.cfg.Watchdog, machine.Exclusive)
}

// lingerEnd returns the time at which a lease without a hold is released.
func (l *Lock) lingerEnd() machine.Instant {
	return min(l.lease.lingerUntil, l.lease.handOffUntil(l.cfg.Watchdog))
}
