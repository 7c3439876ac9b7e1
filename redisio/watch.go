package redisio

import (
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Watch is what the user of a Redis is told about its calls. A field that is nil costs nothing.
// The functions are called on any goroutine, and must not block.
type Watch struct {
	// Called reports the reply to a script that was sent, and how long that took.
	Called func(script string, took time.Duration, err *Error)
	// Reached reports a call that was sent, unless the client is closed, and its error, or nil. That too
	// few replicas have confirmed the call is an error that may pass. That a cluster moves a slot is
	// none, nor that the call's keys or arguments are refused.
	Reached func(script string, err *Error)
	// Renewed reports what became of one lease: "renewed", "gone" or "taken", unless there is an
	// error.
	Renewed func(result string, err *Error)
	// Reconnected reports a connection for subscriptions that was opened after one had broken.
	Reconnected func()
}

// Watch sets what is told. It comes before the first call.
func (r *Redis) Watch(w Watch) { r.pool.watch = w }

// began is when a call is sent, if anybody wants to know.
func (w *Watch) began() (at time.Time) {
	if w.Called != nil {
		at = time.Now()
	}
	return at
}

func (w *Watch) called(c *Call, began time.Time, result rueidis.RedisResult, unconfirmed *Error) {
	var err *Error
	if failed := result.Error(); !rueidis.IsRedisNil(failed) {
		err = Sort(failed)
	}
	if w.Called != nil {
		w.Called(c.Script.Name, time.Since(began), err)
	}
	if w.Reached != nil && !errors.Is(result.Error(), rueidis.ErrClosing) {
		if err == nil && c.Confirm {
			err = unconfirmed
		}
		if err != nil && (err.moving() || err.aboutKeys()) {
			err = nil
		}
		w.Reached(c.Script.Name, err)
	}
}

func (w *Watch) renewed(number int64, err *Error) {
	if w.Renewed == nil {
		return
	}
	result := "renewed"
	switch number {
	case scripts.Gone:
		result = "gone"
	case scripts.Taken:
		result = "taken"
	}
	w.Renewed(result, err)
}
