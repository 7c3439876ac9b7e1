package pubsub

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A client that is subscribed to a channel is always subscribed to the first channel, too, both on the server and as
// reported to the listener.
func TestFirstChannel_IsSubscribedBeforeOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	p.See(func(cmd []string) {
		if slices.Index(cmd, first) > 1 {
			t.Errorf("the first channel is after %s", cmd[1])
		}
	})
	subs, e := subscribe(t, redistest.Connect(t, p.URL()+"?write_timeout=1m")) // so that a busy machine breaks no connection
	e.OnSubscribed = func(channel string) {
		if channel != first && e.Count("subscribed "+channel) >= e.Count("subscribed "+first) {
			t.Errorf("%s was reported before the first channel", channel) // on this connection
		}
	}
	if subs.Confirmed(first) {
		t.Error("the first channel is confirmed before anything was added")
	}
	numsub := []string{"PUBSUB", "NUMSUB", first}
	for i := range subscribeBatch + 100 {
		channel := fmt.Sprint("c", i)
		subs.Add(channel)
		numsub = append(numsub, channel)
	}
	check := func() {
		t.Helper()
		counts, err := s.Do(t, numsub...).AsIntMap()
		if err != nil {
			t.Fatal(err)
		}
		for channel, n := range counts {
			if n > counts[first] {
				t.Errorf("%s has %d subscribers, and the first channel has %d", channel, n, counts[first])
			}
		}
	}
	for n := range 10 {
		// There must be no unread confirmation when the connection breaks: it would come too late.
		for _, channel := range numsub[3:] {
			for e.Count("subscribed "+channel) <= n {
				check()
			}
		}
		if n%2 == 0 { // a replacement, without a gap
			redistest.Listen(t, subs, e, "gone")
			subs.Remove("gone")
			for s.Subscribers(t, "gone") > 0 {
				check()
			}
		}
		s.KillClients(t, "pubsub")
	}
	e.Await(t, "subscribed "+first, 11)
	redistest.PublishAndAwait(t, s, e, first)
}

// The first channel stays when no other channel is left, until Close.
func TestFirstChannel_StaysUntilClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, redistest.Connect(t, s.URL()))
	s.AwaitSubscribers(t, first, 0)
	for range 3 {
		redistest.Listen(t, subs, e, "goes")
		subs.Remove("goes")
		s.AwaitSubscribers(t, "goes", 0)
		s.AwaitSubscribers(t, first, 1)
	}
	s.MustDo(t, "PUBLISH", first, "a payload")
	e.Await(t, "message "+first+": a payload", 1)
	if n := e.Count("subscribed " + first); n != 1 {
		t.Errorf("the first channel was reported %d times, want once: there was a gap", n)
	}
	subs.Close()
	s.AwaitSubscribers(t, first, 0)
	if subs.Confirmed(first) {
		t.Error("it is confirmed after Close")
	}
}

// If the ACL forbids the first channel, the other channels are still subscribed, and the first is requested again on
// the next connection.
func TestFirstChannel_IsRequestedAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, redistest.Connect(t, s.User(t, "+@all ~* resetchannels &c*")), "c0")
	for i := 1; i < 5; i++ {
		redistest.Listen(t, subs, e, fmt.Sprint("c", i))
	}
	if n := e.Count("refused " + first); n != 1 || subs.Confirmed(first) {
		t.Errorf("refused %d times, confirmed: %v", n, subs.Confirmed(first))
	}
	s.MustDo(t, "ACL", "SETUSER", "user", "allchannels")
	s.KillClients(t, "pubsub")
	e.Await(t, "subscribed "+first, 1)
	e.Await(t, "subscribed c4", 2)
	redistest.PublishAndAwait(t, s, e, first, "c0", "c4")
}
