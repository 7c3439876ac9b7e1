package redisclient

import (
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Watch contains functions that a Redis calls to report its calls; a field may be nil. The functions are called on any
// goroutine, and must not block.
type Watch struct {
	// Called reports the reply to a script, and how long it took.
	Called func(script string, took time.Duration, err *redisio.Error)
	// Reached reports whether Redis was available to a call: err is nil, or the error of the call. It is not called if
	// the client is closed, or for the rejection of a call that is Optional. A missing confirmation by replicas is a
	// transient error. A slot that a cluster moves, and a refusal of the call's keys or arguments, are not errors.
	Reached func(script string, err *redisio.Error)
	// Renewed reports the result for one lease: "renewed", "gone" or "taken", unless there is an error.
	Renewed func(result string, err *redisio.Error)
	// Reconnected reports a connection for subscriptions that replaces a broken connection.
	Reconnected func()
}

// Watch sets the functions. It must be called before the first call.
func (r *Redis) Watch(w Watch) { r.pool.watch = w }

// startTime returns the current time if Called needs it.
func (w *Watch) startTime() (at time.Time) {
	if w.Called != nil {
		at = time.Now()
	}
	return at
}

func (w *Watch) reportCall(c *Call, began time.Time, result rueidis.RedisResult, unconfirmed *redisio.Error) {
	var err *redisio.Error
	if failed := result.Error(); !rueidis.IsRedisNil(failed) {
		err = redisio.Classify(failed)
	}
	if w.Called != nil {
		w.Called(c.Script.Name, time.Since(began), err)
	}
	if w.Reached != nil && !errors.Is(result.Error(), rueidis.ErrClosing) {
		if err == nil && c.Confirm {
			err = unconfirmed
		}
		if err != nil && (moving(err) || aboutKeys(err)) {
			err = nil
		}
		if c.Optional && err != nil && !err.Transient {
			return
		}
		w.Reached(c.Script.Name, err)
	}
}

func (w *Watch) reportRenewal(number int64, err *redisio.Error) {
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

func (w *Watch) reportReconnect() {
	if w.Reconnected != nil {
		w.Reconnected()
	}
}
