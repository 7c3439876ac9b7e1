package semaphore_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// expectClose sets the count of a latch, and checks the result.
func expectClose(t *testing.T, l *lockkeeper.Latch, n int64, want bool) {
	t.Helper()
	if done, err := l.TrySetCount(locktest.Within(t), n); done != want || err != nil {
		t.Fatalf("closed: %v, %v", done, err)
	}
}

func expectCount(t *testing.T, l *lockkeeper.Latch, want int64) {
	t.Helper()
	if n, err := l.Count(locktest.Within(t)); n != want || err != nil {
		t.Errorf("the count is %d, %v; want %d", n, err, want)
	}
}

// A wait ends only after all have counted down, in any process, each id once. All waiters of a process cost one
// command; at the end nothing is left in Redis that does not expire.
func TestLatch_OpensWhenAllHaveCountedDown(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	other := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	here, there := s.Latch(k.LockName), other.Latch(k.LockName)
	ctx := locktest.Within(t)
	locktest.OK(t, here.Wait(ctx))
	locktest.OK(t, here.CountDown(ctx))
	expectClose(t, here, 3, true)
	expectClose(t, there, 9, false)
	locktest.IsError(t, there.Wait(ctx, lockkeeper.WithWait(0)), lockkeeper.ErrHeld, ": refused: the latch is closed")
	locktest.IsError(t, here.Wait(ctx, lockkeeper.WithWait(time.Second)), lockkeeper.ErrTimeout)
	passed := make(chan error, 100)
	for range 50 {
		go func() { passed <- here.Wait(ctx) }()
		go func() { passed <- there.Wait(ctx) }()
	}
	s.AwaitWaiting(t, 50) // a waiter that comes when the latch is open costs a command
	other.AwaitWaiting(t, 50)
	redistest.Eventually(t, "both to subscribe", func() bool {
		return k.Server.Subscribers(t, "redisson_countdownlatch__channel__{"+k.LockName+"}") == 2
	})
	k.Server.ResetStats(t)
	locktest.OK(t, here.CountDownOnce(ctx, "a"))
	locktest.OK(t, there.CountDownOnce(ctx, "a"))
	expectCount(t, there, 2)
	locktest.OK(t, there.CountDown(ctx))
	if len(passed) > 0 {
		t.Error("a wait for a closed latch has ended")
	}
	locktest.OK(t, here.CountDown(ctx))
	for range 100 {
		locktest.OK(t, locktest.Await(t, "the latch to open", passed))
	}
	expectCount(t, here, 0)
	calls := k.Server.Calls(t)
	if scripts := calls["evalsha"] + calls["eval"]; scripts > 12 {
		t.Errorf("%d scripts for 6 calls and 100 waiters", scripts)
	}
	left := slices.DeleteFunc(k.Server.Keys(t, "*"), func(key string) bool {
		return strings.HasPrefix(key, "lockkeeper_calls:") && k.Number(t, "PTTL", key) > 0
	})
	if len(left) > 0 {
		t.Errorf("left in Redis: %q", left)
	}
	expectClose(t, there, 1, true)
	locktest.OK(t, here.CountDownOnce(ctx, "a")) // on a new latch
	locktest.OK(t, there.Wait(ctx))
	locktest.Fails(here.TrySetCount(ctx, 0))(t, lockkeeper.ErrInvalid)
	locktest.IsError(t, here.CountDownOnce(ctx, ""), lockkeeper.ErrInvalid)
	locktest.IsError(t, here.CountDownOnce(ctx, strings.Repeat("x", 513)), lockkeeper.ErrInvalid)
}

// An id may be any text of up to 512 bytes, also one like the marker in the set of ids.
func TestLatch_CountsEachIDOnce(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	l, ctx := s.Latch(k.LockName), locktest.Within(t)
	ids := []string{"job 1", "\x00", "\x00lockkeeper", "\xff\xfe", strings.Repeat("\x00", 512)}
	expectClose(t, l, int64(len(ids)), true)
	for range 2 {
		for _, id := range ids[1:] {
			locktest.OK(t, l.CountDownOnce(ctx, id))
		}
	}
	expectCount(t, l, 1)
	locktest.OK(t, l.CountDownOnce(ctx, ids[0]))
	locktest.OK(t, l.Wait(ctx))
}

// A lost reply counts nothing twice, and a failed count-down is repeated.
func TestLatch_LostReplyCountsOnce(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Shared(t), locktest.ShortCallTimeout)
	l, patient := s.Latch(s.LockName), locktest.Open(t, s.Server.URL(), lockkeeper.Config{CallTimeout: locktest.Soon}).Latch(s.LockName)
	expectClose(t, patient, 33, true)
	for _, mode := range []redistest.Mode{redistest.Lost, redistest.Silent} {
		loss := s.Proxy.DropRepliesTo(func(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") }, 3, mode)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 4 {
					_ = l.CountDown(locktest.Within(t)) // it continues in the background if it fails
				}
			})
		}
		all.Wait()
		loss.Wait(t)
	}
	redistest.Eventually(t, "all but one to be counted", func() bool { return s.Number(t, "GET", s.LockName) == 1 })
	locktest.OK(t, patient.CountDown(locktest.Within(t)))
	locktest.OK(t, l.Wait(locktest.Within(t)))
}

// A waiter continues although nothing is published, and although a foreign client, which uses no ids, has set another
// count and counted it down.
func TestLatch_WorksWithForeignClients(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.ShortTimeouts)
	l := s.Latch(k.LockName)
	k.Do(t, "SET", k.LockName, "2")
	locktest.OK(t, l.CountDownOnce(locktest.Within(t), "a"))
	k.Do(t, "DEL", k.LockName)
	k.Do(t, "SET", k.LockName, "2")
	locktest.OK(t, l.CountDownOnce(locktest.Within(t), "a"))
	expectCount(t, l, 1)
	passed := locktest.Go(func() error { return l.Wait(locktest.Within(t)) })
	redistest.Eventually(t, "the waiter", func() bool {
		return k.Server.Subscribers(t, "redisson_countdownlatch__channel__{"+k.LockName+"}") == 1
	})
	k.Do(t, "DEL", k.LockName)
	locktest.OK(t, locktest.Await(t, "the next poll", passed))
}

// By message, a latch works in the same way; a count-down counts once, at whatever moment the actor crashes on it.
func TestLatch_CountsOnceByMessage(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, locktest.NoPolling)
	p, named := s.Probe(t), &messages.Latch{Name: k.LockName}
	changed := func(m any, done bool, count int64) {
		t.Helper()
		if got := locktest.Ask[*messages.LatchChanged](t, p, m); got.Done != done || got.Count != count || got.Latch.GetName() != k.LockName {
			t.Errorf("%T is answered %v", m, got)
		}
	}
	refused := func(m any, want messages.Reason) {
		t.Helper()
		if got := locktest.Ask[*messages.LatchRefused](t, p, m); got.Reason != want {
			t.Errorf("%T is answered %v", m, got)
		}
	}
	changed(&messages.TrySetCount{Latch: named, Count: 4}, true, 4)
	changed(&messages.TrySetCount{Latch: named, Count: 9}, false, 4)
	refused(&messages.TrySetCount{Latch: named}, messages.Reason_REASON_INVALID)
	refused(&messages.CountDown{}, messages.Reason_REASON_INVALID)
	refused(&messages.AwaitLatch{Latch: named, Wait: durationpb.New(0)}, messages.Reason_REASON_HELD)
	p.Send(&messages.AwaitLatch{Latch: named})
	p.Send(&messages.CancelAwait{Latch: named})
	if got := locktest.Next[*messages.LatchRefused](t, p); got.Reason != messages.Reason_REASON_CANCELLED {
		t.Errorf("the wait is answered %v", got)
	}
	if got := locktest.Next[*messages.LatchChanged](t, p); !got.Done || got.Count != 1 {
		t.Errorf("the cancel is answered %v", got)
	}
	faults.Hit(locktest.InTurn("*messages.CountDown"), nil)
	changed(&messages.CountDown{Latch: named}, true, 3)
	faults.Hit(nil, locktest.InTurn("*messages.CountDown"))
	changed(&messages.CountDown{Latch: named, Id: "a"}, true, 2)
	faults.Hit(nil, nil)
	changed(&messages.CountDown{Latch: named, Id: "a"}, true, 2)
	changed(&messages.CountDown{Latch: named}, true, 1)
	changed(&messages.InspectLatch{Latch: named}, true, 1)
	p.Send(&messages.AwaitLatch{Latch: named})
	p.Send(&messages.CountDown{Latch: named})
	if got := locktest.Next[*messages.LatchChanged](t, p); got.Count != 0 {
		t.Errorf("counted down to %v", got)
	}
	locktest.Next[*messages.LatchOpened](t, p)
}
