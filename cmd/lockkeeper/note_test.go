//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// ls, inspect and watch show the notes of holds, with hidden characters escaped.
func TestNotes_AreShown(t *testing.T) {
	t.Parallel()
	server, prefix := redistest.Shared(t), redistest.Name(t)+":"
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: prefix})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	const note, printed = "10.0.0.1:80\x1b[2J\u202e", `"10.0.0.1:80\x1b[2J\u202e"`
	must(s.Lock("lock").Acquire(ctx, lockkeeper.WithNote(note)))
	must(s.ExpirableSemaphore("permits").TrySetPermits(ctx, 2))
	must(s.ExpirableSemaphore("permits").Acquire(ctx))
	must(s.ExpirableSemaphore("permits").Acquire(ctx, lockkeeper.WithNote(note)))

	var v inspect.Lock
	redistest.Eventually(t, "the note of the lock", func() bool {
		v = read[inspect.Lock](t, server, 0, "inspect", "--json", "-prefix", prefix, "lock")[0]
		return v.Owners[0].Note == note
	})
	redistest.Eventually(t, "the note of the permit", func() bool {
		permits := read[inspect.Counter](t, server, 0, "inspect", "--json", "-prefix", prefix, "permits")[0].Permits
		return len(permits) == 2 && permits[0].Note+permits[1].Note == note
	})
	if line := heldBy(v); !strings.Contains(line, ", note "+printed) {
		t.Errorf("watch prints %s", line)
	}
	for _, args := range [][]string{{"ls"}, {"inspect", "lock"}, {"inspect", "permits"}} {
		args = append([]string{args[0], "-prefix", prefix}, args[1:]...)
		if text, _ := runCommand(t, server, 0, args...); strings.Count(text, printed) != 1 {
			t.Errorf("%q prints %s", args, text)
		}
	}
}

// inspect shows that the work of a holder has ended, and that only its minimum time keeps the lock.
func TestInspect_ShowsAMinimumTime(t *testing.T) {
	t.Parallel()
	server, prefix := redistest.Shared(t), redistest.Name(t)+":"
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: prefix})))
	hold := must(s.Lock("nightly").Acquire(ctx, lockkeeper.WithAtLeast(time.Hour)))
	for _, ended := range []bool{false, true} {
		if ended {
			check(hold.Release(ctx))
			check(s.Close(ctx))
		}
		if text, _ := runCommand(t, server, 0, "inspect", "-prefix", prefix, "nightly"); strings.Contains(text, "its work has ended") != ended {
			t.Errorf("ended: %v, and inspect prints %s", ended, text)
		}
	}
}
