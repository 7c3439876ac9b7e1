//go:build unix

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/look"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// What is no lock is shown as what it is, and is not released.
func TestInspectWhatIsNoLock(t *testing.T) {
	t.Parallel()
	server, prefix := redistest.Shared(t), redistest.Name(t)+":"
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: prefix, Anonymous: true})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	must(s.Permits("permits").TrySetPermits(ctx, 4))
	long := must(s.Permits("permits").Acquire(ctx, lockkeeper.WithLease(time.Hour)))
	must(s.Permits("permits").Acquire(ctx, lockkeeper.WithLease(2*time.Hour)))
	java := "abcdefghijklmnop" // an id of Redisson's: one that has expired, and one without an end
	server.Do(t, "ZADD", "{"+prefix+"permits}:timeout", "1000", java, "922337203685477", strings.ToUpper(java))
	server.Do(t, "INCRBY", prefix+"permits", "-2")
	must(s.Latch("latch").TrySetCount(ctx, 3))
	wait, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Latch("latch").Wait(wait)
	}()
	t.Cleanup(func() { stop(); <-done })
	redistest.Eventually(t, "it waits", func() bool {
		return server.Subscribers(t, "redisson_countdownlatch__channel__{"+prefix+"latch}") == 1
	})
	must(s.Semaphore("semaphore").TrySetPermits(ctx, 7, 0))

	for name, want := range map[string]look.Counter{
		"permits":   {Kind: look.KindPermits, Count: 1, Taken: 3},
		"latch":     {Kind: look.KindLatch, Count: 3, Waiters: 1},
		"semaphore": {Kind: look.KindCounter, Count: 7},
	} {
		got := read[look.Counter](t, server, 0, "inspect", "--json", "-prefix", prefix, name)[0]
		if got.Kind != want.Kind || got.Name != name || got.Count != want.Count || got.Taken != want.Taken || got.Waiters != want.Waiters || got.TTL != -1 {
			t.Errorf("inspect prints %+v, want %+v", got, want)
		}
		text, _ := says(t, server, 0, "inspect", "-prefix", prefix, name)
		if !strings.Contains(text, want.Kind) || !regexp.MustCompile(fmt.Sprintf(`(?m)^(free|count) +%d$`, want.Count)).MatchString(text) {
			t.Errorf("inspect prints %s", text)
		}
		if _, why := says(t, server, exitUnavailable, "release", "--force", "-prefix", prefix, name); !strings.Contains(why, "no lock") {
			t.Errorf("release says %s", why)
		}
	}
	got := read[look.Counter](t, server, 0, "inspect", "--json", "-prefix", prefix, "permits")[0].Permits
	if len(got) != 3 || got[0].ID != long.ID() || got[0].Left > 3_600_000 || got[0].Left < 3_500_000 || got[1].Left < 7_100_000 || got[2].Left != -1 {
		t.Errorf("the permits that are taken are %+v", got)
	}
}
