// See node_test.go.

//go:build !race

package grains

import (
	"context"
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A Leave during the start waits for it, and leaves nothing that runs.
func TestLeave_DuringTheStart(t *testing.T) {
	for what, start := range map[string]func(*node){"a member": func(n *node) { n.StartMember() }, "a client": func(n *node) { n.StartClient() }} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, redistest.Start(t))
			n := f.node(Config{})
			f.redis.Pause(t)
			started, left := make(chan struct{}), make(chan error, 1)
			go func() {
				defer close(started)
				defer func() { _ = recover() }() // the start may fail
				start(n)
			}()
			redistest.Eventually(t, "a System", func() bool { return n.d.System() != nil })
			ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
			defer cancel()
			go func() { left <- n.d.Leave(ctx) }()
			redistest.Eventually(t, "the Leave", func() bool { return n.d.candidacy.Err() != nil })
			f.redis.Resume(t)
			if err := <-left; err != nil {
				t.Error(err)
			}
			<-started
			if _, err := n.d.System().Lock("x").TryAcquire(ctx); !errors.Is(err, lockkeeper.ErrClosed) {
				t.Errorf("after Leave, the System answers with %v", err)
			}
			if leases := f.redis.Keys(t, f.key("member:*")); len(leases) > 0 {
				t.Errorf("after Leave, there are %v", leases)
			}
		})
	}
}
