package redistest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Events is a pubsub.Listener that counts events: "message c", "subscribed c", "refused c".
type Events struct {
	OnSubscribed func(channel string) // may be nil

	mu      sync.Mutex
	events  map[string]int
	refusal *redisio.Error
	failure *redisio.Error
}

// NewEvents returns Events without any.
func NewEvents() *Events { return &Events{events: map[string]int{}} }

// Refusal returns the error of the last refusal.
func (e *Events) Refusal() *redisio.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusal
}

// Failure returns the error of the last failure.
func (e *Events) Failure() *redisio.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}

func (e *Events) record(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events[what]++
}

// Message implements pubsub.Listener.
func (e *Events) Message(channel, payload string) {
	e.record("message " + channel)
	e.record("message " + channel + ": " + payload)
}

// Subscribed implements pubsub.Listener.
func (e *Events) Subscribed(channel string) {
	if e.OnSubscribed != nil {
		e.OnSubscribed(channel)
	}
	e.record("subscribed " + channel)
}

// Refused implements pubsub.Listener.
func (e *Events) Refused(channels []string, err *redisio.Error) {
	for _, channel := range channels {
		e.record("refused " + channel)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = err
}

// Failing implements pubsub.Listener.
func (e *Events) Failing(command, server string, err *redisio.Error) {
	e.record("failing " + command + " at " + server)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = err
}

// Recovered implements pubsub.Listener.
func (e *Events) Recovered(command, server string) {
	e.record("recovered " + command + " at " + server)
}

// Count returns how often an event was reported.
func (e *Events) Count(what string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.events[what]
}

// Await waits until an event was reported at least n times.
func (e *Events) Await(t testing.TB, what string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprint(what, ", ", n, " times"), func() bool { return e.Count(what) >= n })
}

// Listen adds channels to subscriptions, and waits until they are subscribed.
func Listen(t testing.TB, subs interface{ Add(channels ...string) }, e *Events, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		n := e.Count("subscribed " + channel)
		subs.Add(channel)
		e.Await(t, "subscribed "+channel, n+1)
	}
}

// PublishAndAwait publishes on channels, and waits until the messages are received.
func PublishAndAwait(t testing.TB, s *Server, e *Events, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		n := e.Count("message " + channel)
		s.MustDo(t, "PUBLISH", channel, "0")
		e.Await(t, "message "+channel, n+1)
	}
}
