package redisio

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// rueidis ends the process if Redis refuses UNSUBSCRIBE, or the PING that it sends behind
// it. Here Redis begins and ceases to refuse PINGs all the time (MISCONF).
func TestSubscriptionsWhileRedisRefusesPings(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := redistest.Start(t, "--save", "3600 1", "--dir", dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	do(t, s, "BGSAVE")
	redistest.Eventually(t, "PINGs to be refused", func() bool { return s.Do(t, "PING").Error() != nil })

	end := make(chan struct{})
	var use sync.WaitGroup
	for i := range 4 {
		e := newEars()
		subs := subscribe(t, connect(t, s.URL()), e)
		use.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				channel := fmt.Sprint("c", i, n)
				subs.Add(channel)
				e.awaitSubscribed(t, channel, 1)
				subs.Remove(channel)
			}
		})
	}
	for range 400 {
		do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		time.Sleep(5 * time.Millisecond)
	}
	close(end)
	use.Wait()
	if n := s.Calls(t)["unsubscribe"]; n != 0 {
		t.Errorf("%d UNSUBSCRIBE were sent", n)
	}
}

// What is wanted is heard without a gap, and told once, while the connection is replaced
// again and again to get rid of what is not.
func TestNothingIsMissedWhileConnectionsAreReplaced(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()), e)
	const wanted = 3
	for i := range wanted {
		subs.Add(fmt.Sprint("wanted", i))
		e.awaitSubscribed(t, fmt.Sprint("wanted", i), 1)
	}
	published := 0
	for round := range 5 {
		gone := fmt.Sprint("gone", round)
		subs.Add(gone)
		e.awaitSubscribed(t, gone, 1)
		subs.Remove(gone)
		if !subs.Subscribed(gone) {
			t.Error("a channel that lingers does not count")
		}
		redistest.Eventually(t, "the channel to go", func() bool {
			for i := range wanted {
				publish(t, s, fmt.Sprint("wanted", i))
			}
			published++
			return s.Subscribers(t, gone) == 0
		})
		redistest.Eventually(t, "the channel not to count", func() bool { return !subs.Subscribed(gone) })
	}
	for i := range wanted {
		channel := fmt.Sprint("wanted", i)
		e.awaitHeard(t, channel, published)
		if n := e.count(e.subscribed, channel); n != 1 {
			t.Errorf("%s: told of %d subscriptions, want 1", channel, n)
		}
		awaitSubscribers(t, s, channel, 1)
	}
	calls := s.Calls(t)
	if calls["unsubscribe"] != 0 {
		t.Errorf("%d UNSUBSCRIBE were sent", calls["unsubscribe"])
	}
}

// However fast channels come and go, connections are replaced now and then only.
func TestReplacementsAreFew(t *testing.T) {
	s := redistest.Start(t)
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	began := time.Now()
	for n := 0; time.Since(began) < time.Second; n++ {
		channel := fmt.Sprint("c", n)
		subs.Add(channel)
		e.awaitSubscribed(t, channel, 1)
		subs.Remove(channel)
	}
	if n, most := s.Calls(t)["hello"], int64(time.Since(began)/linger)+5; n > most {
		t.Errorf("%d connections in %v", n, time.Since(began))
	}
}

// A channel that comes back while it lingers costs Redis nothing.
func TestLingeringChannelIsUsedAgain(t *testing.T) {
	s := redistest.Start(t)
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	subs.Add("c")
	e.awaitSubscribed(t, "c", 1)
	for n := 2; n < 20; n++ {
		subs.Remove("c")
		subs.Add("c")
		e.awaitSubscribed(t, "c", n)
		publish(t, s, "c")
		e.awaitHeard(t, "c", n-1)
	}
	if n := s.Calls(t)["subscribe"]; n != 1 {
		t.Errorf("%d SUBSCRIBE were sent", n)
	}
}

// A client whose pool has room for one connection only gets along, with a gap.
func TestReplacementWithoutRoomForTwo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true, BlockingPoolSize: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	e := newEars()
	subs := subscribe(t, client, e)
	subs.Add("stays")
	subs.Add("goes")
	e.awaitSubscribed(t, "stays", 1)
	e.awaitSubscribed(t, "goes", 1)
	subs.Remove("goes")
	awaitSubscribers(t, s, "goes", 0)
	e.awaitSubscribed(t, "stays", 2)
}
