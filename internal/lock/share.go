package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// mayJoin reports whether a request may share the lease as it is held now, or after another count of the waiters.
func (l *Lock) mayJoin(req *waiter) bool { return l.shares(req) && !l.isSealed() }

// isSealed reports whether no reader may join, and it is too early to ask again whether others wait.
func (l *Lock) isSealed() bool { return l.lease.sealed && l.now < l.lease.recountAt }

// shares reports whether a request could share the lease if no other client waited for it.
func (l *Lock) shares(req *waiter) bool {
	return l.phase == owned && req.Mode == machine.Shared && l.lease.counts.exclusive == 0 && l.lease.mode == machine.Shared && !l.closing &&
		l.holds.first.exclusive == 0 // a writer that died while it became a reader is not released yet
}

// join lets the waiter at the head of the queue share the lease, and reports whether it did or has sent a command for
// that. No reader joins past a writer.
func (l *Lock) join() bool {
	if l.queue.Len() == 0 || !l.shares(l.queue.Head()) {
		return false
	}
	switch {
	case !l.admit():
		return l.main.kind != opNone
	case l.lease.fixed && l.renewal.kind != opNone:
		return false // the renewal must not arrive after a command that sets a longer TTL
	case l.lease.fixed && l.lease.unanswered.MayCutShort(l.cfg.Watchdog):
		l.seal() // an unanswered command may still shorten the lease
	case l.lease.fixed:
		// From now on the lease is renewed for the new reader.
		l.start(op{kind: opCount, counts: l.lease.counts, mode: machine.Shared, request: l.queue.Pop()})
	case l.now >= l.lease.handOffUntil(l.cfg.Watchdog):
		if l.renewal.kind == opNone {
			l.startRenewal(true)
		}
		return false
	default:
		l.grant(l.queue.Pop(), true)
	}
	return true
}

// admit reports whether one more reader may share the lease: readers that come one after another must not exclude
// writers for ever. It may send a command to find out, and returns false until the reply.
func (l *Lock) admit() bool {
	switch {
	case l.isSealed():
	case l.lease.sealed:
		l.countWaiters() // they may have left
	case l.lease.turn.IsForced(l.now):
		l.seal() // others may wait without being seen
	case l.lease.turn.IsOver(l.now):
		l.countWaiters()
	default:
		return true
	}
	return false
}

// finishJoin lets a reader join a lease that may have been fixed until now.
func (l *Lock) finishJoin(o op) {
	if l.lease.fixed {
		l.lease.fixed, l.lease.until = false, 0
	}
	l.lease.noteTTL(&o, l.now, l.cfg)
	l.grant(o.request, false)
}

// mayShareNow reports whether the first waiter is a reader by now, because a writer before it was withdrawn. It may
// join readers that hold the lock, so it does not wait for a message.
func (l *Lock) mayShareNow() bool {
	if !l.features.Shares || l.isDeferred() || l.wait.LastErr != "" || len(l.wait.sent) == 0 {
		return false
	}
	first, found := l.queue.FirstWaiting()
	return found && first.Mode == machine.Shared && l.wait.sent[len(l.wait.sent)-1].mode == machine.Exclusive
}
