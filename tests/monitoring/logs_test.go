package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// journal keeps the log as text.
type journal struct{ redistest.Log }

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// lines are the lines with that message.
func (j *journal) lines(message string) (lines []string) {
	for line := range strings.Lines(j.String()) {
		if strings.Contains(line, fmt.Sprintf("msg=%q", message)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// await waits for a line with that message, and expects words in the first such line.
func (j *journal) await(t *testing.T, message string, words ...string) {
	t.Helper()
	redistest.Eventually(t, "the log line "+message, func() bool { return len(j.lines(message)) > 0 })
	for _, word := range words {
		if line := j.lines(message)[0]; !strings.Contains(line, word) {
			t.Errorf("the line lacks %q: %s", word, line)
		}
	}
}

// A request without a sender is logged when it is refused, and not when it is carried out.
func TestLog_ReportsOnlyRefusalsWithoutASender(t *testing.T) {
	t.Parallel()
	var j journal
	s, k := locktest.New(t, lockkeeper.Config{Logger: j.logger()})
	guardian, holder := s.Guardian(), s.Probe(t)
	locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: k.Message()})
	s.Actors.Root.Send(guardian, &messages.Release{Lock: k.Message(), Owner: holder.Pid})
	k.AwaitFree(t)
	s.Actors.Root.Send(guardian, &messages.Acquire{Lock: k.Message()})
	const message = "a request without a sender was refused"
	redistest.Eventually(t, "the refusal", func() bool { return strings.Contains(j.String(), "names no owner") })
	if lines := j.lines(message); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") ||
		!strings.Contains(lines[0], "lock="+k.LockName) {
		t.Errorf("logged %q", lines)
	}
	s.Actors.Root.Send(guardian, &messages.AcquirePermits{Semaphore: &messages.Semaphore{Name: k.LockName}})
	s.Actors.Root.Send(guardian, &messages.AwaitLatch{Latch: &messages.Latch{Name: k.LockName}})
	redistest.Eventually(t, "the other refusals", func() bool { return len(j.lines(message)) == 3 })
	if lines := j.lines(message); !strings.Contains(lines[1], "semaphore="+k.LockName) || !strings.Contains(lines[2], "latch="+k.LockName) {
		t.Errorf("logged %q", lines)
	}
}

// The log line of a loss describes the hold. The end by Close has level INFO.
func TestLog_DescribesTheLostHold(t *testing.T) {
	t.Parallel()
	var j journal
	s, k := locktest.New(t, lockkeeper.Config{Logger: j.logger(), Renewal: 100 * time.Millisecond, Watchdog: locktest.Watchdog})
	hold, holder := locktest.Acquire(t, s.Lock(k.LockName)), s.Probe(t)
	owner := k.HeldBy(t, s, "1")
	other := locktest.NewKey(t, k.Server)
	locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: other.Message()})
	k.Do(t, "DEL", k.Name)
	locktest.EndedBy(t, hold, messages.Reason_REASON_GONE)
	j.await(t, "lease lost", "level=WARN", "lock="+k.LockName+" ", "kind=plain", "owner="+owner+" ", "term="+owner[strings.Index(owner, ":")+1:]+" ", "age=", "reason=gone")
	locktest.Stop(t, s)
	redistest.Eventually(t, "both log lines", func() bool { return len(j.lines("lease lost")) == 2 })
	if line := j.lines("lease lost")[1]; !strings.Contains(line, "level=INFO") ||
		!strings.Contains(line, "reason=closed") || !strings.Contains(line, " holder=") {
		t.Errorf("of Close was logged: %s", line)
	}
}

// The log line of a lost permit has the permit's id, however the permit was acquired.
func TestLog_NamesTheLostPermit(t *testing.T) {
	t.Parallel()
	var j journal
	s, k := locktest.New(t, lockkeeper.Config{Logger: j.logger(), Renewal: 100 * time.Millisecond, Watchdog: locktest.Watchdog})
	permits, ctx := s.ExpirableSemaphore(k.LockName), locktest.Within(t)
	locktest.OK(t, permits.SetPermits(ctx, 2))
	permit := locktest.Must(permits.Acquire(ctx))(t)
	holder := s.Probe(t)
	of := &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}
	answer := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: of, ShowPermit: true})
	k.Do(t, "DEL", "{"+k.Name+"}:timeout")
	locktest.Next[*messages.LeaseLost](t, holder)
	locktest.Await(t, "the loss", permit.Context().Done())
	redistest.Eventually(t, "both log lines", func() bool { return len(j.lines("lease lost")) == 2 })
	lines := j.lines("lease lost")
	for _, id := range []string{permit.ID(), answer.PermitIds[0]} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "permit="+id+" ") }) {
			t.Errorf("no line has the permit %s: %s", id, lines)
		}
	}
	if strings.Contains(strings.Join(lines, ""), "owner=") {
		t.Errorf("a permit has no owner field: %s", lines)
	}
}

// The log line of a long wait names the process that holds the lock, and the log line of a long hold the code that has
// taken it.
func TestLog_ReportsLongWaitsAndHolds(t *testing.T) {
	t.Parallel()
	var waits, holds journal
	holder, k := locktest.New(t, lockkeeper.Config{Logger: holds.logger(), Application: "billing", LongHold: 50 * time.Millisecond, HoldStacks: true})
	waiter := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Logger: waits.logger(), LongWait: 100 * time.Millisecond})
	held := locktest.Acquire(t, holder.Lock(k.LockName))
	owner := k.HeldBy(t, holder, "1")
	redistest.Eventually(t, "the record", func() bool {
		status, err := waiter.Lock(k.LockName).Inspect(t.Context())
		return err == nil && status.Process.Application == "billing"
	})
	granted := locktest.AcquireSoon(t.Context(), waiter.Lock(k.LockName))
	waits.await(t, "a request has been waiting for a long time", "level=WARN", "lock="+k.LockName+" ", "kind=plain", "waiting=", "waiters=1", "owner="+owner+" ",
		"held_here=false", "application=billing", fmt.Sprint("pid=", os.Getpid()), "host=")
	holds.await(t, "a lock has been held for a long time", "lock="+k.LockName+" ", "owner="+owner+" ", "age=", `stack="locktest.AcquireSoon.func1 (hold.go:`)
	locktest.Release(t, held)
	locktest.Release(t, locktest.Got(t, granted).Hold)
	if n := len(waits.lines("a lock has been held for a long time")); n > 0 {
		t.Errorf("%d long holds were logged without LongHold", n)
	}
}

// A standby is not a long wait, and a leader not a long hold: no alert is due.
func TestLog_IgnoresStandbysAndLeaders(t *testing.T) {
	t.Parallel()
	var j journal
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	m := openMeasured(t, k.Server.URL(), lockkeeper.Config{Logger: j.logger(), LongWait: 20 * time.Millisecond, LongHold: 20 * time.Millisecond})
	leader, ordinary := s.Acquire(t, k), locktest.NewKey(t, k.Server)
	held := s.Acquire(t, ordinary)
	ctx, resign := context.WithCancel(t.Context())
	elected := make(chan error, 1)
	go func() {
		elected <- m.Lock(k.LockName).Elect(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
	}()
	m.expect(t, map[string]int64{"lockkeeper.standbys plain": 1, "lockkeeper.waiters plain": 1})
	granted := m.AcquireSoon(t, ordinary)
	j.await(t, "a request has been waiting for a long time", "lock="+ordinary.LockName+" ")

	s.Release(t, leader)
	m.expect(t, map[string]int64{"lockkeeper.standbys plain": 0, "lockkeeper.holds plain": 1})
	s.Release(t, held)
	hold := locktest.Got(t, granted).Hold
	j.await(t, "a lock has been held for a long time", "lock="+ordinary.LockName+" ")
	m.Release(t, hold)
	resign()
	locktest.Check(t, locktest.Await(t, "the end of Elect", elected))
	m.expect(t, map[string]int64{"lockkeeper.wait.duration plain granted": 1, "lockkeeper.hold.duration plain": 2})
	for _, message := range []string{"a request has been waiting for a long time", "a lock has been held for a long time"} {
		for _, line := range j.lines(message) {
			if !strings.Contains(line, "lock="+ordinary.LockName+" ") {
				t.Errorf("logged: %s", line)
			}
		}
	}
}

// A loss that only the release finds is logged and counted like a loss that a renewal finds.
func TestLog_ReportsLossFoundByRelease(t *testing.T) {
	t.Parallel()
	var j journal
	server := redistest.Start(t)
	m := openMeasured(t, server.URL(), lockkeeper.Config{Logger: j.logger(), Renewal: 9 * time.Second})
	k, permits := locktest.NewKey(t, server), locktest.NewKey(t, server)
	hold := locktest.Acquire(t, m.Lock(k.LockName))
	server.Do(t, "DEL", k.Name)
	locktest.IsError(t, hold.Release(t.Context()), lockkeeper.ErrLost)
	if err := hold.Release(t.Context()); err == nil {
		t.Error("the second release succeeded")
	}
	j.await(t, "lease lost", "level=WARN", "lock="+k.LockName+" ", "kind=plain", "reason=gone", "its release has found")
	locktest.Must(m.ExpirableSemaphore(permits.LockName).TrySetPermits(t.Context(), 1))(t)
	permit := locktest.Must(m.ExpirableSemaphore(permits.LockName).Acquire(t.Context()))(t)
	server.Do(t, "FLUSHALL")
	locktest.IsError(t, permit.Release(t.Context()), lockkeeper.ErrLost)
	m.expect(t, map[string]int64{"lockkeeper.losses plain gone": 1, "lockkeeper.losses expirable_semaphore gone": 1})
	locktest.Equal(t, len(j.lines("lease lost")), 2, "%d losses were logged")
}

// An outage is logged once at its beginning, with the number of waiters, and once at its end.
func TestLog_ReportsAnOutageOnce(t *testing.T) {
	t.Parallel()
	var j journal
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := locktest.Open(t, proxy.URL(), lockkeeper.Config{Logger: j.logger(), CallTimeout: time.Second, Poll: 100 * time.Millisecond})
	k := locktest.NewKey(t, server)
	k.TakeAs(t, locktest.Redisson, time.Minute)
	granted := locktest.AcquireSoon(t.Context(), s.Lock(k.LockName))
	semaphore, permit := s.Semaphore(k.LockName+" too"), make(chan error, 1)
	k.Do(t, "SET", k.LockName+" too", "0")
	go func() { permit <- semaphore.Acquire(t.Context(), 1) }()
	s.AwaitWaiting(t, 2)
	k.AwaitListener(t)
	proxy.Freeze(true)
	j.await(t, "Redis is unavailable", "level=WARN", "error=", "waiting=2", "held=0")
	proxy.Heal()
	j.await(t, "Redis is available again", "level=INFO", "after=", "failed=")
	k.Unlock(t)
	locktest.Release(t, locktest.Got(t, granted).Hold)
	locktest.Check(t, errors.Join(semaphore.Release(t.Context(), 1), locktest.Await(t, "the permit", permit)))
	locktest.Equal(t, len(j.lines("Redis is unavailable")), 1, "the outage was logged %d times")
}

// A Redis that refuses every call is not available again. The rejection is logged once, with Redis's error and a
// remedy; its end is logged when calls succeed.
func TestLog_ReportsARejectionOnce(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		wrong, right []string
		words        []string
	}{
		"wrong password": {[]string{"resetpass", ">other"}, []string{"resetpass", ">pw"}, []string{"WRONGPASS", "check the user name and password"}},
		"no rights":      {[]string{"-@all"}, []string{"+@all"}, []string{"NOPERM", "ACL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j journal
			server := redistest.Start(t)
			server.Do(t, "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all")
			proxy := redistest.NewProxy(t, server.Addr())
			s := locktest.Open(t, "redis://app:pw@"+proxy.Addr(), lockkeeper.Config{Logger: j.logger(), CallTimeout: 2 * time.Second})
			s.SkipCloseCheck = true // a rejected release is given up
			k := locktest.NewKey(t, server)
			try := func() error {
				hold, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
				if err == nil {
					err = hold.Release(locktest.Within(t))
				}
				return err
			}
			locktest.OK(t, try())
			proxy.Freeze(true)
			locktest.IsError(t, try(), lockkeeper.ErrUnavailable)
			j.await(t, "Redis is unavailable")
			server.Do(t, append([]string{"ACL", "SETUSER", "app"}, broken.wrong...)...)
			server.Do(t, "CLIENT", "KILL", "USER", "app")
			proxy.Heal()
			redistest.Eventually(t, "a rejection", func() bool { return errors.Is(try(), lockkeeper.ErrRejected) })
			j.await(t, "Redis rejects calls", append(broken.words, "level=WARN", "script=", "waiting=", "held=")...)
			// The rejections go on for longer than the quiet period that ends an outage.
			for over := time.Now().Add(5 * time.Second); time.Now().Before(over); time.Sleep(50 * time.Millisecond) {
				locktest.IsError(t, try(), lockkeeper.ErrRejected)
			}
			if lines := len(j.lines("Redis rejects calls")); lines != 1 || len(j.lines("Redis is available again")) > 0 {
				t.Errorf("while every call is refused: %s", j.String())
			}
			server.Do(t, append([]string{"ACL", "SETUSER", "app"}, broken.right...)...)
			redistest.Eventually(t, "the end", func() bool {
				_ = try()
				return len(j.lines("Redis is available again")) == 1
			})
			locktest.Check(t, try())
		})
	}
}

// A Redis that refuses one key does serve: only the caller gets the error, and an outage ends.
func TestLog_IgnoresARefusedKey(t *testing.T) {
	t.Parallel()
	var j journal
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := locktest.Open(t, proxy.URL(), lockkeeper.Config{Logger: j.logger(), CallTimeout: 300 * time.Millisecond})
	s.SkipCloseCheck = true // a try without a reply in time is given back, which the refused key rejects as well
	k := locktest.NewKey(t, server)
	k.Do(t, "SET", k.Name, "text")
	proxy.Freeze(true)
	locktest.Fails(s.Lock(k.LockName+" too").TryAcquire(t.Context()))(t, lockkeeper.ErrUnavailable)
	j.await(t, "Redis is unavailable")
	proxy.Heal()
	redistest.Eventually(t, "the end of the outage", func() bool {
		_, err := s.Lock(k.LockName).TryAcquire(t.Context())
		return errors.Is(err, lockkeeper.ErrRejected) && len(j.lines("Redis is available again")) == 1
	})
	k.Do(t, "SET", k.Name+" permits", "007")
	err := s.Semaphore(k.LockName+" permits").TryAcquire(t.Context(), 1)
	locktest.IsError(t, err, lockkeeper.ErrRejected)
	if lines := j.lines("Redis rejects calls"); len(lines) > 0 {
		t.Errorf("a key that is refused was logged as if Redis rejected calls: %q", lines)
	}
}

// Names, applications and errors of Redis have no hidden characters in the log: JSON does not escape characters that
// are invisible or change the direction of text.
func TestLog_EscapesHiddenCharacters(t *testing.T) {
	t.Parallel()
	const hidden = "\u202eeciovni\u2800"
	var log redistest.Log
	logged := func(t *testing.T, message string) {
		t.Helper()
		redistest.Eventually(t, "the log line "+message, func() bool { return strings.Contains(log.String(), message) })
		for line := range strings.Lines(log.String()) {
			if strings.ContainsAny(line, hidden[:len("\u202e")]+"\u2800") {
				t.Errorf("logged: %q", line)
			}
			if strings.Contains(line, message) && !strings.Contains(line, `\\u202e`) {
				t.Errorf("the name is not in %s", line)
			}
		}
	}
	holder, k := locktest.New(t, lockkeeper.Config{Application: hidden})
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)), LongWait: 50 * time.Millisecond, Renewal: 100 * time.Millisecond, Watchdog: locktest.Watchdog,
	})
	name := k.LockName + hidden
	held := locktest.Acquire(t, holder.Lock(name))
	granted := locktest.AcquireSoon(t.Context(), s.Lock(name))
	logged(t, "a request has been waiting for a long time")
	locktest.Release(t, held)
	hold := locktest.Got(t, granted).Hold
	k.Do(t, "DEL", name)
	locktest.EndedBy(t, hold, messages.Reason_REASON_GONE)
	logged(t, "lease lost")
}
