package redisclient

import (
	"context"
	"sync"
	"time"
)

// deadlineContext is a context with a deadline, and with the values of another context. rueidis calls Deadline for
// nearly every call, but Done only sometimes, so the channel and a timer are created only then.
type deadlineContext struct {
	context.Context
	at time.Time

	mu    sync.Mutex // guards the fields below
	timer *time.Timer
	done  chan struct{}
	ended bool
}

func newDeadlineContext(at time.Time) *deadlineContext {
	return &deadlineContext{Context: context.Background(), at: at}
}

func (u *deadlineContext) Deadline() (time.Time, bool) { return u.at, true }

func (u *deadlineContext) Done() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		u.done = make(chan struct{})
		u.timer = time.AfterFunc(time.Until(u.at), u.end)
	}
	return u.done
}

func (u *deadlineContext) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	close(u.done)
}

func (u *deadlineContext) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return context.DeadlineExceeded
	}
	return nil
}

// forget stops the timer, when the context is no longer used.
func (u *deadlineContext) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
	}
}
