package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ErrorOf returns the error that a call would return in place of an answer by message.
func TestErrorOf_MapsAnswersToErrors(t *testing.T) {
	lock, permit := &messages.Lock{Name: "a"}, &messages.Lock{Name: "a", Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}
	for _, c := range []struct {
		answer any
		want   error
		text   string
	}{
		{&messages.NotAcquired{Lock: lock, Reason: messages.Reason_REASON_HELD, Detail: "by b"}, lockkeeper.ErrHeld, `lockkeeper: acquire "a": lock is held: by b`},
		{&messages.NotAcquired{Lock: permit, Reason: messages.Reason_REASON_HELD, Detail: "0 are free"}, lockkeeper.ErrHeld, `lockkeeper: acquire "a": refused: 0 are free`},
		{&messages.NotAcquired{Lock: lock, Reason: messages.Reason_REASON_CANCELLED}, context.Canceled, `lockkeeper: acquire "a": context canceled`},
		{&messages.NotReleased{Lock: lock, Reason: messages.Reason_REASON_LOST}, lockkeeper.ErrLost, `lockkeeper: release "a": lock was lost`},
		{&messages.NotReleased{Lock: lock, Reason: messages.Reason_REASON_NOT_HELD}, lockkeeper.ErrNotHeld, `lockkeeper: release "a": not held`},
		{
			&messages.NotReleased{Lock: lock, Reason: messages.Reason_REASON_UNAVAILABLE}, lockkeeper.ErrNotReleased,
			`lockkeeper: release "a": release is not confirmed: redis is unavailable`,
		},
		{&messages.Failed{Lock: lock, Reason: messages.Reason_REASON_REJECTED, Detail: "NOPERM"}, lockkeeper.ErrRejected, `lockkeeper: request "a": redis rejected the request: NOPERM`},
		{&messages.LeaseLost{Lock: lock, Reason: messages.Reason_REASON_EXPIRED}, lockkeeper.ErrLost, `lockkeeper: hold "a": lock was lost`},
		{&messages.LeaseLost{Lock: permit, Reason: messages.Reason_REASON_FORCED}, lockkeeper.ErrLost, `lockkeeper: hold "a": permit was lost`},
		{
			&messages.PermitsRefused{
				Semaphore: &messages.Semaphore{Name: "s"}, Reason: messages.Reason_REASON_TIMED_OUT,
			},
			lockkeeper.ErrTimeout, `lockkeeper: semaphore "s": wait timed out`,
		},
		{&messages.LatchRefused{Latch: &messages.Latch{Name: "l"}, Reason: messages.Reason_REASON_CLOSED}, lockkeeper.ErrClosed, `lockkeeper: latch "l": system is closed`},
		{(*messages.LeaseLost)(nil), lockkeeper.ErrLost, `lockkeeper: hold "": lock was lost`},
		{&messages.NotAcquired{Reason: 99}, nil, `lockkeeper: acquire "": 99`},
		{&actor.DeadLetterResponse{}, lockkeeper.ErrClosed, `lockkeeper: request "": system is closed`},
	} {
		err := lockkeeper.ErrorOf(c.answer)
		if err == nil || err.Error() != c.text || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%T{%v} stands for %v, want %s", c.answer, c.answer, err, c.text)
		}
	}
	for _, answer := range []any{&messages.Acquired{}, &messages.Released{}, "", nil} {
		if err := lockkeeper.ErrorOf(answer); err != nil {
			t.Errorf("%T stands for %v", answer, err)
		}
	}
}
