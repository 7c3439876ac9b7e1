package redisio

import (
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Close returns when every call is answered, also those that nobody waits for.
func TestCloseWaits(t *testing.T) {
	s := redistest.Shared(t)
	r, in, hash := New(connect(t, s.URL()), time.Hour), newInbox(), redistest.Name(t)
	for i := range 5000 {
		r.Run(counted(in, hash, i, soon()))
	}
	renewed := newInbox()
	r.Renew(Renewal{Script: scripts.Renew, Key: hash, Owner: "0", Lease: time.Minute, Deadline: soon(), To: renewed})
	r.Close()
	if n := in.count() + renewed.count(); n != 5001 {
		t.Errorf("%d calls were answered before the end", n)
	}
	in.awaitAll(t, 5000)
	r.Close() // again
}

// After Close calls are answered too, but not sent.
func TestCallsAfterClose(t *testing.T) {
	s := redistest.Shared(t)
	r, in, hash := New(connect(t, s.URL()), time.Millisecond), newInbox(), redistest.Name(t)
	r.Close()
	r.Run(counted(in, hash, 0, soon()))
	r.Renew(renewal(hash, in, 1))
	for i, reply := range in.awaitAll(t, 2) {
		if reply.Err != errClosed {
			t.Errorf("call %d: %+v", i, reply)
		}
	}
	if n, err := s.Do(t, "EXISTS", hash).AsInt64(); err != nil || n != 0 {
		t.Error("it was sent", err)
	}
}

func TestCloseSubscriptions(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, s.URL())
	warmUp(t, client)
	before := runtime.NumGoroutine()
	r := open(t, client)
	for name, use := range map[string]func(subs *Subscriptions, e *ears){
		"unused":     func(*Subscriptions, *ears) {},
		"at once":    func(subs *Subscriptions, _ *ears) { subs.Add("c") },
		"removed":    func(subs *Subscriptions, _ *ears) { subs.Add("c"); subs.Remove("c") },
		"subscribed": func(subs *Subscriptions, e *ears) { subs.Add("c"); e.awaitSubscribed(t, "c", 1) },
	} {
		e := newEars()
		subs := r.NewSubscriptions(e)
		use(subs, e)
		subs.Close()
		subs.Close() // again
		awaitSubscribers(t, s, "c", 0)
		subs.Add("c") // nothing comes of it
		subs.Remove("c")
		subs.Close()
		if n := s.Subscribers(t, "c"); n != 0 {
			t.Errorf("%s: %d subscribers", name, n)
		}
	}
	redistest.Eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestCloseSubscriptionsOfASilentServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, prepare := range map[string]func(subs *Subscriptions, e *ears){
		"connected": func(subs *Subscriptions, e *ears) { subs.Add("c"); e.awaitSubscribed(t, "c", 1); s.Pause(t) },
		"subscribing": func(subs *Subscriptions, e *ears) {
			subs.Add("c")
			e.awaitSubscribed(t, "c", 1)
			s.Pause(t)
			subs.Add("d")
		},
		"connecting": func(subs *Subscriptions, _ *ears) { s.Pause(t); subs.Add("c") },
	} {
		client := connect(t, s.URL())
		e := newEars()
		subs := New(client, 0).NewSubscriptions(e)
		prepare(subs, e)
		start := time.Now()
		subs.Close()
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: Close took %v", name, took)
		}
		s.Resume(t)
		client.Close()
	}
}

// A client whose connections are all in use elsewhere does not hold up the end either.
func TestCloseSubscriptionsWithoutAConnection(t *testing.T) {
	s := redistest.Shared(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true, BlockingPoolSize: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	_, giveBack := client.Dedicate()
	defer giveBack()
	subs := New(client, 0).NewSubscriptions(newEars())
	subs.Add("c")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		subs.Close()
	}()
	select {
	case <-closed:
	case <-time.After(redistest.Limit):
		t.Fatal("Close waits for a connection")
	}
}
