package locks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestBadConfig(t *testing.T) {
	client, err := lockkeeper.Connect(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	system := locktest.QuietActorSystem()
	type config = lockkeeper.Config
	for _, test := range []struct {
		config config
		words  []string
	}{
		{config{Watchdog: 99 * time.Millisecond}, []string{"Watchdog is 99ms", "100ms"}},
		{config{Watchdog: -time.Second}, []string{"Watchdog is -1s"}},
		{config{Watchdog: 200 * 365 * 24 * time.Hour}, []string{"Watchdog is 1752000h"}},
		{config{Renewal: 16 * time.Second}, []string{"Renewal is 16s", "half of Watchdog, which is 30s"}},
		{config{Renewal: -1}, []string{"Renewal is -1ns"}},
		{config{Watchdog: time.Second, Renewal: 501 * time.Millisecond}, []string{"Renewal is 501ms", "1s"}},
		{config{Tenure: 11 * time.Second}, []string{"Tenure is 11s", "third of Watchdog, which is 30s"}},
		{config{Tenure: -1}, []string{"Tenure is -1ns"}},
		{config{Poll: 9 * time.Millisecond}, []string{"Poll is 9ms", "10ms"}},
		{config{CallTimeout: time.Millisecond}, []string{"CallTimeout is 1ms", "10ms"}},
		{config{Idle: time.Millisecond}, []string{"Idle is 1ms", "10ms"}},
		{config{QueueLimit: -1}, []string{"QueueLimit is -1"}},
		{config{KeyPrefix: strings.Repeat("x", 512)}, []string{"KeyPrefix has 512 bytes"}},
		{config{KeyPrefix: "\xff"}, []string{"KeyPrefix", "UTF-8"}},
		{config{Poll: 1, Idle: 1}, []string{"Poll is 1ns", "Idle is 1ns"}}, // all of them at once
	} {
		s, err := lockkeeper.New(system, client, test.config)
		if err == nil {
			_ = s.Close(locktest.Within(t))
			t.Errorf("%+v was taken", test.config)
			continue
		}
		for _, word := range test.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %q: %v", word, err)
			}
		}
	}
	if _, err := lockkeeper.New(nil, client, config{}); err == nil {
		t.Error("no actor system is needed")
	}
	if _, err := lockkeeper.New(system, nil, config{}); err == nil {
		t.Error("no client is needed")
	}
	if !t.Failed() && lockkeeper.From(system) != nil {
		t.Error("a system that did not start is registered")
	}
	for _, good := range []config{
		{}, {Watchdog: 100 * time.Millisecond}, {Renewal: 15 * time.Second}, {Tenure: 10 * time.Second}, {Watchdog: time.Second, Renewal: 500 * time.Millisecond},
		{Poll: 10 * time.Millisecond, CallTimeout: 10 * time.Millisecond, Idle: 10 * time.Millisecond, QueueLimit: 1},
	} {
		s, err := lockkeeper.New(system, client, good)
		if err != nil {
			t.Errorf("%+v: %v", good, err)
			continue
		}
		if lockkeeper.From(system) != s {
			t.Error("From does not find the system")
		}
		if err := s.Close(locktest.Within(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestQueueLimit(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{QueueLimit: 2})
	hold := s.Acquire(t, k)
	waiting := []<-chan locktest.Grant{s.AcquireSoon(t, k), s.AcquireSoon(t, k)}
	s.AwaitWaiters(t, k, 2)
	_, err := s.Lock(k.LockName).Acquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrQueueFull)
	if !strings.Contains(err.Error(), "limit is 2") {
		t.Errorf("the error does not name the limit: %v", err)
	}
	locktest.Refuses(t, s.Probe(t), &messages.Acquire{Lock: k.Message()}, messages.Reason_REASON_QUEUE_FULL, fmt.Sprint(2))
	locktest.Release(t, s.AcquireIn(t, hold.Context(), k)) // a re-entry does not queue
	locktest.Release(t, hold)
	for range waiting {
		select {
		case g := <-waiting[0]:
			locktest.Release(t, g.Hold)
		case g := <-waiting[1]:
			locktest.Release(t, g.Hold)
		}
	}
	k.IsFree(t)
}
