package conformance_test

// The conformance suite over every kind of lock, by the Go API and by message.

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/conformance"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestConformance(t *testing.T) {
	var servers []*redistest.Server
	for range 3 {
		s := redistest.Start(t)
		s.Do(t, "PING") // its own client is there before the suite counts goroutines
		servers = append(servers, s)
	}
	adapters := map[string]conformance.Adapter{}
	for name, k := range kinds {
		a := adapter{conforming: k, servers: servers[:max(k.servers, 1)]}
		adapters[name] = a
		if k.message != nil {
			a.byMessage = true
			adapters[name+" by message"] = a
		}
	}
	conformance.RunAll(t, adapters)
}

// adapter makes a kind of lock known to the suite.
type adapter struct {
	conforming
	servers   []*redistest.Server
	byMessage bool
}

// looking keeps the cases from using a server's own client together: it would start
// goroutines for that, which stay.
var looking sync.Mutex

// Traits implements conformance.Adapter.
func (a adapter) Traits() conformance.Traits {
	return conformance.Traits{TTL: locktest.Watchdog, RefusesReentry: a.once, Ordered: a.ordered}
}

// Left implements conformance.Adapter: every key and every channel that has the lock's
// name in it. The counters of the tokens stay for ever, so that no token comes again.
func (a adapter) Left(t testing.TB, lock string) (left []string) {
	looking.Lock()
	defer looking.Unlock()
	for _, s := range a.servers {
		for _, key := range s.Keys(t, "*"+lock+"*") {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				left = append(left, key)
			}
		}
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", "*"+lock+"*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, channels...)
	}
	return left
}

// Delete implements conformance.Deleter.
func (a adapter) Delete(t testing.TB, lock string) {
	looking.Lock()
	defer looking.Unlock()
	keys := []string{lock}
	if a.keys != nil {
		keys = a.keys(lock)
	}
	for i, s := range a.servers {
		if key := keys[min(i, len(keys)-1)]; key != "" {
			// A RedLock is granted by a majority; the others' votes may still be on their way.
			redistest.Eventually(t, key+" to be there and deleted", func() bool {
				n, err := s.Do(t, "DEL", key).AsInt64()
				return err == nil && n == 1
			})
		}
	}
}

// Open implements conformance.Adapter.
func (a adapter) Open(t testing.TB) conformance.Client {
	t.Helper()
	p := &process{kind: a.conforming, actors: locktest.QuietActorSystem()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if p.killed {
			cancel()
		}
		if err := p.Close(ctx); err != nil && !p.killed {
			t.Errorf("close: %v", err)
		}
		for _, c := range p.clients {
			c.Close()
		}
	})
	faultinject.Into(p.actors, p.Middleware)
	for _, s := range a.servers {
		client, err := lockkeeper.Connect(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		p.clients = append(p.clients, client)
		system, err := lockkeeper.New(p.actors, client, lockkeeper.Config{
			Watchdog: locktest.Watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: 5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.systems = append(p.systems, system)
	}
	p.home = p.systems[a.home]
	if len(p.systems) == 3 {
		var err error
		if p.red, err = lockkeeper.RedLock(p.systems...); err != nil {
			t.Fatal(err)
		}
	}
	if a.byMessage {
		return &mailed{process: p}
	}
	return p
}

// What the suite is to find, so that it leaves out nothing.
var (
	_ conformance.Deleter       = adapter{}
	_ conformance.ForceReleaser = (*process)(nil)
	_ conformance.Inspector     = (*process)(nil)
	_ conformance.Killer        = (*process)(nil)
	_ conformance.Crasher       = (*process)(nil)
	_ conformance.Mortal        = (*mailed)(nil)
	_ conformance.Reenterer     = (*called)(nil)
	_ conformance.Reenterer     = (*answered)(nil)
	_ conformance.Tokened       = (*numbered)(nil)
	_ conformance.Tokened       = (*tokened)(nil)
)
