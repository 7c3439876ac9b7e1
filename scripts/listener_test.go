package scripts_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

const (
	channels = "redisson_*"
	endMark  = "redisson_end"
)

// channelOf is the channel of a lock whose name has no braces.
func channelOf(name string) string { return "redisson_lock__channel:{" + name + "}" }

// listener hears the channels of all locks. It subscribes to a pattern, so that
// PUBSUB NUMSUB does not count it.
type listener struct {
	client rueidis.Client
	ended  chan struct{}

	mu    sync.Mutex
	heard map[string][]string // channel -> payloads
}

func listen(t *testing.T, client rueidis.Client) *listener {
	t.Helper()
	l := &listener{client: client, ended: make(chan struct{}, 1), heard: map[string][]string{}}
	connection, giveBack := client.Dedicate()
	t.Cleanup(giveBack)
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: l.hear})
	if err := connection.Do(t.Context(), connection.B().Psubscribe().Pattern(channels).Build()).Error(); err != nil {
		t.Fatalf("PSUBSCRIBE: %v", err)
	}
	return l
}

func (l *listener) hear(m rueidis.PubSubMessage) {
	if m.Channel == endMark {
		l.ended <- struct{}{}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[m.Channel] = append(l.heard[m.Channel], m.Message)
}

// messages gives what was published on a channel since they were last asked for.
func (l *listener) messages(t *testing.T, channel string) []string {
	t.Helper()
	// Messages come in order: with the mark, all those before it are here.
	if err := l.client.Do(t.Context(), l.client.B().Publish().Channel(endMark).Message("").Build()).Error(); err != nil {
		t.Fatalf("PUBLISH: %v", err)
	}
	select {
	case <-l.ended:
	case <-time.After(redistest.Limit):
		t.Fatal("the listener hears nothing")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard[channel]
	delete(l.heard, channel)
	return heard
}

// subscribe adds clients that wait for a lock.
func (l *listener) subscribe(t *testing.T, channel string, clients int) {
	t.Helper()
	for range clients {
		connection, giveBack := l.client.Dedicate()
		t.Cleanup(giveBack)
		connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
		if err := connection.Do(t.Context(), connection.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
			t.Fatalf("SUBSCRIBE: %v", err)
		}
	}
}

// told gives the channels that begin like that on which "0" was published since they
// were last asked for, without the beginning and sorted; any other payload is behind
// its channel.
func (l *listener) told(t *testing.T, beginning string) []string {
	t.Helper()
	l.messages(t, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	var told []string
	for channel, payloads := range l.heard {
		if rest, ok := strings.CutPrefix(channel, beginning); ok {
			for _, p := range payloads {
				told = append(told, strings.TrimSuffix(rest+" "+p, " 0"))
			}
			delete(l.heard, channel)
		}
	}
	slices.Sort(told)
	return told
}
