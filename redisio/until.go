package redisio

import (
	"context"
	"sync"
	"time"
)

// until is a context that ends at a point in time. rueidis asks for the end of nearly
// every call, and seldom for a channel: only then is there one, and a timer.
type until struct {
	context.Context
	at time.Time

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	done  chan struct{}
	ended bool
}

// untils are used again if they are as good as new: nobody has asked for the channel.
var untils = sync.Pool{New: func() any { return &until{Context: context.Background()} }}

func newUntil(at time.Time) *until {
	u := untils.Get().(*until)
	u.at = at
	return u
}

func (u *until) Deadline() (time.Time, bool) { return u.at, true }

func (u *until) Done() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		u.done = make(chan struct{})
		u.timer = time.AfterFunc(time.Until(u.at), u.end)
	}
	return u.done
}

func (u *until) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	close(u.done)
}

func (u *until) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return context.DeadlineExceeded
	}
	return nil
}

// forget ends the use of the context, and gives up the timer.
func (u *until) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		untils.Put(u)
		return
	}
	u.timer.Stop()
}
