package redisio

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// subscribe opens subscriptions that are closed when the test ends.
func subscribe(t *testing.T, client rueidis.Client, e *ears) *Subscriptions {
	t.Helper()
	s := open(t, client).NewSubscriptions(e)
	t.Cleanup(s.Close)
	return s
}

func publish(t *testing.T, s *redistest.Server, channel string) {
	t.Helper()
	do(t, s, "PUBLISH", channel, "0")
}

func awaitSubscribers(t *testing.T, s *redistest.Server, channel string, n int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(n, " subscribers of ", channel), func() bool { return s.Subscribers(t, channel) == n })
}

func TestSubscribeAndUnsubscribe(t *testing.T) {
	s := redistest.Shared(t)
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	a, b := redistest.Name(t), redistest.Name(t)
	for round := 1; round <= 3; round++ {
		subs.Add(a)
		subs.Add(b)
		e.awaitSubscribed(t, a, round)
		e.awaitSubscribed(t, b, round)
		if s.Subscribers(t, a) != 1 || s.Subscribers(t, b) != 1 {
			t.Error("told, but not subscribed")
		}
		publish(t, s, a)
		e.awaitHeard(t, a, round)
		subs.Remove(a)
		awaitSubscribers(t, s, a, 0)
		publish(t, s, a)
		publish(t, s, b)
		e.awaitHeard(t, b, round)
		if n := e.count(e.heard, a); n != round {
			t.Errorf("heard %d messages, want %d", n, round)
		}
		subs.Remove(b)
		awaitSubscribers(t, s, b, 0)
	}
	if a, b := e.count(e.subscribed, a), e.count(e.subscribed, b); a != 3 || b != 3 {
		t.Errorf("told of %d and %d subscriptions, want 3 and 3", a, b)
	}
}

// Who adds a channel is told of the subscription, also if there is one already.
func TestSubscribeAgain(t *testing.T) {
	s := redistest.Start(t)
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	subs.Add("c")
	e.awaitSubscribed(t, "c", 1)
	for n := 2; n <= 5; n++ {
		subs.Add("c")
		e.awaitSubscribed(t, "c", n)
	}
	if n := s.Calls(t)["subscribe"]; n != 1 {
		t.Errorf("%d SUBSCRIBE were sent", n)
	}
	subs.Remove("c")
	subs.Add("c")
	e.awaitSubscribed(t, "c", 6)
	awaitSubscribers(t, s, "c", 1)
	subs.Remove("never added")
	publish(t, s, "c")
	e.awaitHeard(t, "c", 1)
}

func TestManyChannelsShareOneConnection(t *testing.T) {
	const channels = 3 * subscribeBatch
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	watch(p, func(cmd []string) {
		if len(cmd) > 1+subscribeBatch {
			t.Errorf("%d channels in one %s", len(cmd)-1, cmd[0])
		}
	})
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()), e)
	for i := range channels {
		subs.Add(fmt.Sprint("c", i))
	}
	for i := range channels {
		e.awaitSubscribed(t, fmt.Sprint("c", i), 1)
	}
	for i := range channels {
		publish(t, s, fmt.Sprint("c", i))
	}
	for i := range channels {
		e.awaitHeard(t, fmt.Sprint("c", i), 1)
		if i%2 == 0 {
			subs.Remove(fmt.Sprint("c", i))
		}
	}
	for i := range channels {
		awaitSubscribers(t, s, fmt.Sprint("c", i), int64(i%2))
	}
	if n := s.KillClients(t, "pubsub"); n != 1 {
		t.Errorf("%d connections", n)
	}
	for i := 1; i < channels; i += 2 {
		e.awaitSubscribed(t, fmt.Sprint("c", i), 2)
	}
	for i := range channels {
		if n := s.Subscribers(t, fmt.Sprint("c", i)); n != int64(i%2) {
			t.Errorf("channel %d has %d subscribers", i, n)
		}
	}
}

// Whenever it is told that a channel is subscribed, a message published from then
// on is heard.
func TestNothingIsMissedAfterSubscribed(t *testing.T) {
	s := redistest.Shared(t)
	e, name := newEars(), redistest.Name(t)
	told := make(chan string, 1000)
	e.onSubscribed = func(channel string) { told <- channel }
	subs := subscribe(t, connect(t, s.URL()), e)
	for i := range 200 {
		channel := fmt.Sprint(name, i%7)
		subs.Add(channel)
		subs.Add(fmt.Sprint(name, "other", i))
		heard := e.count(e.heard, channel)
		for <-told != channel {
		}
		publish(t, s, channel)
		e.awaitHeard(t, channel, heard+1)
		if i%2 == 0 {
			subs.Remove(channel)
		}
	}
}

// Two Adds at once are not told of a subscription that Redis has yet to confirm.
func TestSubscribedIsNotToldTooEarly(t *testing.T) {
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	e, channel := newEars(), redistest.Name(t)
	subs := subscribe(t, connect(t, p.URL()), e)
	subs.Add(channel + "first")
	e.awaitSubscribed(t, channel+"first", 1)
	watch(p, func(cmd []string) {
		if slices.Contains(cmd, channel) && e.count(e.subscribed, channel) > 0 {
			t.Error("told before Redis confirmed")
		}
	})
	subs.mu.Lock()
	subs.want[channel] = struct{}{}
	subs.touched = append(subs.touched, channel, channel)
	subs.wake()
	subs.mu.Unlock()
	e.awaitSubscribed(t, channel, 1)
}

func TestSubscriptionsInACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 1)[0]
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	for i := range 50 {
		subs.Add(fmt.Sprint("c", i))
	}
	for i := range 50 {
		e.awaitSubscribed(t, fmt.Sprint("c", i), 1)
		publish(t, s, fmt.Sprint("c", i))
		e.awaitHeard(t, fmt.Sprint("c", i), 1)
	}
	s.KillClients(t, "pubsub")
	e.awaitSubscribed(t, "c7", 2)
	publish(t, s, "c7")
	e.awaitHeard(t, "c7", 2)
}

// Close does not wait for a server that does not answer.
