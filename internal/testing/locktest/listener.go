package locktest

import (
	"regexp"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// listener receives what is published on a lock's channel.
type listener struct {
	client   rueidis.Client
	channel  string
	mu       sync.Mutex
	received []string
}

// Listen subscribes to the lock's channel until the test ends.
func (k Key) Listen(t testing.TB) *listener {
	t.Helper()
	client := Connect(t, k.Server.URL())
	connection, giveBack := client.Dedicate()
	t.Cleanup(func() { giveBack(); client.Close() })
	e := &listener{client: client, channel: k.Channel}
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.received = append(e.received, m.Message)
	}})
	// By pattern: the processes under test must not take it for a waiter.
	pattern := regexp.MustCompile(`.`).ReplaceAllString(k.Channel, `\$0`) // that matches this name alone
	err := connection.Do(Within(t), connection.B().Psubscribe().Pattern(pattern).Build()).Error()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Messages returns what was received so far. It publishes a mark to know that nothing is under way.
func (e *listener) Messages(t testing.TB) []string {
	t.Helper()
	const mark = "end"
	OK(t, e.client.Do(Within(t), e.client.B().Publish().Channel(e.channel).Message(mark).Build()).Error())
	var messages []string
	redistest.Eventually(t, "the mark", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.received); n == 0 || e.received[n-1] != mark {
			return false
		}
		messages, e.received = e.received[:len(e.received)-1], nil
		return true
	})
	return messages
}
