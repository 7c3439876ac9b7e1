package lock

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// work is the state that a lock needs only while a command is under way or a request waits for one. It is separate from
// Lock, since most of the many locks that a process may hold need none of it.
type work struct {
	// main is the command under way about the lease itself.
	main op
	// renewal is the command of the watchdog.
	renewal renewal
	// sync is the command that only lists the waiters of a fair lock.
	sync syncing
	// background are commands that do not concern the present term: releases of terms that are over, and forced releases.
	background []op
	// takes are the last unanswered commands which may still take the key.
	takes []unansweredTake
	// pendingCounts are changes of the counts that wait until main is free.
	pendingCounts []countChange
	// ensures are the requests that wait for a renewal.
	ensures []ensure
	// extensions are the requests that wait until both main and renewal are free.
	extensions []extension

	wait waiting
	sub  machine.Subscription
}

// noWork is the work of all locks that have none. It is never changed.
var noWork = new(work)

// works are pooled, since every event needs one.
var works = sync.Pool{New: func() any { return new(work) }}

// takeWork begins an event: it gives the lock its own work and its own order, since a copy shares both with its
// original.
func (l *Lock) takeWork() {
	if l.ownsWork {
		return
	}
	own := works.Get().(*work)
	*own = *l.work
	l.work, l.ownsWork = own, true
	if q := l.queueInRedis(); q != nil {
		l.order = q.clone()
	}
}

// leaveWork ends an event.
func (l *Lock) leaveWork() {
	if l.ownsWork = false; l.work.isEmpty() {
		l.work.free()
		l.work = noWork
	}
}

// Replace frees the work of a lock that l, a copy of it, has replaced. That lock must not be used afterwards.
func (l *Lock) Replace(before *Lock) {
	if before.work != l.work {
		before.work.free()
		before.work = noWork
	}
}

func (w *work) free() {
	if w != noWork {
		*w = work{}
		works.Put(w)
	}
}

func (w *work) isEmpty() bool {
	return w.main.kind == opNone && w.renewal.kind == opNone && w.sync.kind == opNone &&
		len(w.background)+len(w.takes)+len(w.pendingCounts)+len(w.ensures)+len(w.extensions) == 0 &&
		w.wait.isZero() && w.sub == machine.Subscription{}
}
