package layout_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The enumerations of package messages have the same numbers where they are known by other
// types: there they are converted.
func TestNumbersOfEnumerations(t *testing.T) {
	reasons := []messages.Reason{
		lock.Invalid: messages.Reason_REASON_INVALID, lock.Held: messages.Reason_REASON_HELD, lock.TimedOut: messages.Reason_REASON_TIMED_OUT,
		lock.CancelledByRequest: messages.Reason_REASON_CANCELLED, lock.QueueFull: messages.Reason_REASON_QUEUE_FULL, lock.Closed: messages.Reason_REASON_CLOSED,
		lock.Unavailable: messages.Reason_REASON_UNAVAILABLE, lock.Rejected: messages.Reason_REASON_REJECTED, lock.Crashed: messages.Reason_REASON_CRASHED,
		lock.NotHeld: messages.Reason_REASON_NOT_HELD, lock.Lost: messages.Reason_REASON_LOST, lock.Expired: messages.Reason_REASON_EXPIRED,
		lock.Gone: messages.Reason_REASON_GONE, lock.Taken: messages.Reason_REASON_TAKEN, lock.Forced: messages.Reason_REASON_FORCED,
		lock.MaxHold: messages.Reason_REASON_MAX_HOLD, lock.Reentry: messages.Reason_REASON_REENTRY,
	}
	modes := []messages.Mode{lock.Exclusive: messages.Mode_MODE_EXCLUSIVE, lock.Shared: messages.Mode_MODE_SHARED}
	kinds := []messages.Kind{protocol.Reentrant: messages.Kind_KIND_REENTRANT, 1: messages.Kind_KIND_FENCED, protocol.Fair: messages.Kind_KIND_FAIR, protocol.ReadWrite: messages.Kind_KIND_READ_WRITE}
	model := []messages.Kind{redismodel.Reentrant: messages.Kind_KIND_REENTRANT, redismodel.Fenced: messages.Kind_KIND_FENCED, redismodel.Fair: messages.Kind_KIND_FAIR, redismodel.ReadWrite: messages.Kind_KIND_READ_WRITE}
	same(t, reasons, len(messages.Reason_name))
	same(t, modes, len(messages.Mode_name))
	same(t, kinds, len(kinds))
	same(t, model, len(model))
}

// same expects that each of so many numbers is that of its place.
func same[E ~int32](t *testing.T, all []E, n int) {
	t.Helper()
	if len(all) != n {
		t.Errorf("%T: %d of %d have another number", all, len(all), n)
	}
	for i, e := range all {
		if int(e) != i {
			t.Errorf("%T: %v is %d elsewhere, and %d in package messages", all, e, i, e)
		}
	}
}
