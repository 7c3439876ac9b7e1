package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A System whose Redis client was closed before cannot release anything. Its Close says so
// at once, for as long as a key of its may be in Redis.
func TestCloseAfterItsClient(t *testing.T) {
	const watchdog = time.Second
	for what, test := range map[string]struct {
		use   func(t *testing.T, s *locktest.Site, k locktest.Key)
		clean bool
	}{
		"a lock is held": {use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			s.Acquire(t, k)
			s.Client.Close()
		}},
		"a release has failed": {use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			hold := s.Acquire(t, k)
			s.Client.Close()
			if err := hold.Release(locktest.Within(t)); err == nil {
				t.Error("released without a client")
			}
		}},
		"a lock actor was given up": {use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			hold := s.Acquire(t, k)
			s.Client.Close()
			p := s.Probe(t)
			for range 12 {
				p.Send(&messages.Inspect{Lock: k.Message()}) // over which it crashes
			}
			locktest.Await(t, "the loss", hold.Context().Done())
		}},
		"the lease is over": {clean: true, use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			s.Acquire(t, k)
			s.Client.Close()
			k.AwaitFree(t)
			time.Sleep(watchdog) // what cannot be known is whether a renewal was under way
		}},
		"nothing is held": {clean: true, use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			locktest.Release(t, s.Acquire(t, k))
			s.Client.Close()
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := locktest.NewKey(t, redistest.Shared(t))
			crashing := &locktest.Saboteur{}
			crashing.Hit(func(m any) bool { _, is := m.(*messages.Inspect); return is }, nil)
			cfg := lockkeeper.Config{}
			if test.clean {
				cfg.Watchdog = watchdog
			}
			s := locktest.Open(t, k.Server.URL(), cfg, crashing.Middleware)
			s.Lame = !test.clean
			test.use(t, s, k)
			began := time.Now()
			err := closeIn(s, redistest.Limit)
			if took := time.Since(began); took > redistest.Limit/2 {
				t.Errorf("Close took %v", took)
			}
			if test.clean {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !k.Exists(t) {
				t.Fatal("the key is gone: there is nothing to tell")
			}
			if err == nil || !strings.Contains(err.Error(), "before Redis confirmed every release") {
				t.Errorf("Close: %v", err)
			}
			if again := closeIn(s, redistest.Limit); again == nil {
				t.Error("the second Close has forgotten")
			}
		})
	}
}
