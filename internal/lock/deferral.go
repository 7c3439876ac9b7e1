package lock

import (
	"math"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// After a turn, a process leaves the lock to others for a while.

// deferral leaves the lock to others for some time, or until messages have come that the lock was released.
type deferral struct {
	cause deferralCause
	// messages is the number of messages that end the deferral.
	messages int
	// deferUntil is the time before which the process does not try.
	deferUntil machine.Instant
}

// deferralCause is why the lock is left to others, or messagesCame if that is over.
type deferralCause uint8

const (
	_ deferralCause = iota
	// afterTurn: the process has just had its turn.
	afterTurn
	// byRedis: a script asked for it, and refuses a try before its end.
	byRedis
	// messagesCame: the lock was left to others until the messages came.
	messagesCame
)

// isDeferred reports whether the lock is left to others for now.
func (l *Lock) isDeferred() bool { return l.now < l.wait.deferUntil }

// deferToOthers leaves the lock to others after a turn of this process. If the process listens, it also receives its
// own message about the release, which then counts as one more.
func (l *Lock) deferToOthers(others int, d time.Duration) {
	l.wait.Refused = true
	messages := others
	switch {
	case others == 0:
		messages = math.MaxInt // only time ends the deferral
	case l.sub.State == machine.Listening:
		messages++
	}
	l.deferFor(afterTurn, messages, d)
}

// deferFor leaves the lock to others for d, or until that many messages have come.
func (l *Lock) deferFor(cause deferralCause, messages int, d time.Duration) {
	l.wait.deferral = deferral{cause: cause, messages: messages, deferUntil: l.now + d}
	l.wait.NextAt = min(l.wait.deferUntil, l.now+l.poll())
}

// countRelease counts a message that the lock was released, and reports whether the process may try now.
func (l *Lock) countRelease() bool {
	switch {
	case !l.isDeferred():
		return true
	case l.sub.State != machine.Listening:
		return false // may be the process's own message, which counts only if it listened
	}
	if l.wait.messages--; l.wait.messages > 0 {
		return false
	}
	l.wait.deferral = deferral{cause: messagesCame}
	return true
}
