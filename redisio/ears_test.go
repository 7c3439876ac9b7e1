package redisio

import (
	"fmt"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// ears is a Listener that keeps what it is told.
type ears struct {
	onSubscribed func(channel string) // may be nil

	mu         sync.Mutex
	heard      map[string]int
	subscribed map[string]int
	refusals   map[string]int
	refusal    *Error
}

func newEars() *ears {
	return &ears{heard: map[string]int{}, subscribed: map[string]int{}, refusals: map[string]int{}}
}

func (e *ears) Message(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[channel]++
}

func (e *ears) Subscribed(channel string) {
	if e.onSubscribed != nil {
		e.onSubscribed(channel)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subscribed[channel]++
}

func (e *ears) Refused(channels []string, err *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, channel := range channels {
		e.refusals[channel]++
	}
	e.refusal = err
}

func (e *ears) count(of map[string]int, channel string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return of[channel]
}

// awaitSubscribed waits until it was told at least n times that the channel is subscribed.
func (e *ears) awaitSubscribed(t testing.TB, channel string, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("subscription ", n, " of ", channel), func() bool { return e.count(e.subscribed, channel) >= n })
}

func (e *ears) awaitHeard(t testing.TB, channel string, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("message ", n, " on ", channel), func() bool { return e.count(e.heard, channel) >= n })
}

func (e *ears) awaitRefused(t testing.TB, channel string, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("refusal ", n, " of ", channel), func() bool { return e.count(e.refusals, channel) >= n })
}
