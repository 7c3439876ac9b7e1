package locks_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// watch begins to watch a lock until stop is called. next waits for the next change.
func watch(t *testing.T, l *lockkeeper.Lock) (next func() lockkeeper.Change, stop func()) {
	t.Helper()
	pull, stop := iter.Pull2(l.Watch(locktest.Within(t)))
	t.Cleanup(stop)
	return func() lockkeeper.Change {
		t.Helper()
		change, err, more := pull()
		if err != nil || !more {
			t.Fatalf("the watch of %s has ended: %v", l.Name(), err)
		}
		return change
	}, stop
}

// A watch yields each holder and its note, also after a transfer, which causes no message, and how long the lock is
// free.
func TestWatch_YieldsHolders(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Application: "watched"})
	outside := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Poll: 20 * time.Millisecond})
	began := time.Now()
	next, _ := watch(t, outside.Lock(k.LockName))
	if c := next(); c.Locked || c.Since.Before(began) || c.Since.After(time.Now()) {
		t.Errorf("a free lock is %+v", c)
	}
	until := func(s *locktest.Site, note string) (c lockkeeper.Change) {
		t.Helper()
		for c = next(); !heldBy(c, s, note); c = next() {
			if c.Note != "" { // a note is read after its lock: it may not be there yet, or no longer
				t.Errorf("unexpected: %+v", c)
			}
		}
		return c
	}
	hold := here.Acquire(t, k, lockkeeper.WithNote("one"))
	if c := until(here, "one"); c.Since.Before(began) || c.Since.After(time.Now()) || c.Process.Application != "watched" {
		t.Errorf("the holder is %+v", c)
	}
	waits := there.AcquireSoon(t, k, lockkeeper.WithNote("two"))
	there.AwaitWaiters(t, k, 1)
	released := time.Now()
	here.Release(t, hold)
	if c := until(there, "two"); c.Since.Before(released) {
		t.Errorf("the next holder has the lock since %v before the release", released.Sub(c.Since))
	}
	there.Release(t, locktest.Got(t, waits).Hold)
	c := next()
	for c.Locked && c.Note == "" {
		c = next()
	}
	if c.Locked || c.Note != "" {
		t.Errorf("a free lock is %+v", c)
	}
}

// A watch hears of the release of a lock of any kind. It does not count as a client that waits without the wait queue,
// and it leaves no subscription.
func TestWatch_HearsReleases(t *testing.T) {
	t.Parallel()
	servers := redistest.SharedServers(t, 3)
	locktest.AgeServers(t, servers...)
	site := func() (all []*locktest.Site) {
		for _, server := range servers {
			all = append(all, locktest.Open(t, server.URL(), lockkeeper.Config{Poll: time.Hour, Watchdog: locktest.Watchdog}))
		}
		return all
	}
	here, outside := site(), site()
	kinds := map[string]func([]*locktest.Site, string) *lockkeeper.Lock{
		"red": func(sites []*locktest.Site, name string) *lockkeeper.Lock {
			return locktest.Must(lockkeeper.NewRedLock(sites[0].System, sites[1].System, sites[2].System))(t).Lock(name)
		},
		"several servers": func(sites []*locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(sites[0].Lock(name), sites[1].FairLock(name+"2"))
		},
	}
	for kind, lock := range locktest.Kinds {
		kinds[kind] = func(sites []*locktest.Site, name string) *lockkeeper.Lock { return lock(sites[0], name) }
	}
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			name := redistest.Name(t)
			subscribers := func(channel string) (n int64) {
				for _, server := range servers {
					for _, one := range []string{name, name + "1", name + "2"} {
						n += server.Subscribers(t, channel+":{"+one+"}")
					}
				}
				return n
			}
			hold := locktest.AcquireIn(t, locktest.Within(t), lock(here, name))
			next, stop := watch(t, lock(outside, name))
			if c := next(); !c.Locked {
				t.Fatalf("a held lock is %+v", c)
			}
			redistest.Eventually(t, "a subscription", func() bool { return subscribers("redisson_lock__channel")+subscribers("redisson_rwlock") > 0 })
			if kind != "fair" && subscribers("lockkeeper_waiters") == 0 {
				t.Error("the watch counts as a client that waits without the wait queue")
			}
			locktest.Release(t, hold)
			for next().Locked { // a MultiLock is released one member at a time
			}
			stop()
			redistest.Eventually(t, "the end of the subscriptions", func() bool {
				return subscribers("redisson_lock__channel")+subscribers("redisson_rwlock")+subscribers("lockkeeper_waiters") == 0
			})
		})
	}
}

// A watch ends with its context or its System, and continues after an outage.
func TestWatch_EndsWithItsContextOrSystem(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{Poll: 20 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
	reason := errors.New("the test is over")
	ctx, cancel := context.WithCancelCause(locktest.Within(t))
	defer cancel(nil)
	var got []string
	for change, err := range s.Lock(k.LockName).Watch(ctx) {
		switch {
		case err == nil && len(got) == 0:
			got = append(got, "free")
			k.Server.Kill(t)
		case errors.Is(err, lockkeeper.ErrUnavailable) && len(got) == 1:
			got = append(got, "unavailable")
			k.Server.Restart(t)
		case errors.Is(err, lockkeeper.ErrUnavailable): // on a loaded machine Redis may answer late
		case err == nil && len(got) == 2:
			got = append(got, "free again")
			cancel(reason)
		case errors.Is(err, reason):
			got = append(got, "over")
		default:
			t.Fatalf("%+v, %v after %v", change, err, got)
		}
	}
	if text := strings.Join(got, ", "); text != "free, unavailable, free again, over" {
		t.Errorf("the changes are %s", text)
	}

	s = locktest.Open(t, k.Server.URL(), lockkeeper.Config{Poll: time.Hour})
	watching := make(chan struct{})
	ended := locktest.Go(func() (last error) {
		for _, err := range s.Lock(k.LockName).Watch(locktest.Within(t)) {
			if last = err; err == nil {
				close(watching)
			}
		}
		return last
	})
	<-watching
	locktest.Stop(t, s)
	locktest.IsError(t, locktest.Await(t, "the end of the watch", ended), lockkeeper.ErrClosed, k.LockName)
	for _, err := range s.Lock(k.LockName).Watch(locktest.Within(t)) {
		locktest.IsError(t, err, lockkeeper.ErrClosed)
	}
	for _, err := range s.Lock("").Watch(context.Background()) {
		locktest.IsError(t, err, lockkeeper.ErrClosed)
	}
}

// Several readers have the lock together only since the last of them came, though the first has had it for longer.
func TestWatch_SeveralReadersHaveItSinceTheLastCame(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Poll: 50 * time.Millisecond})
	next, _ := watch(t, here.ReadWriteLock(k.LockName).Read())
	until := func(owners int) (c lockkeeper.Change) {
		t.Helper()
		for c = next(); len(c.Owners) != owners; c = next() {
		}
		return c
	}
	first := locktest.Acquire(t, here.ReadWriteLock(k.LockName).Read())
	until(1)
	joined := time.Now()
	second := locktest.Acquire(t, there.ReadWriteLock(k.LockName).Read())
	if c := until(2); c.Since.Before(joined) {
		t.Errorf("two readers have the lock since %v before the second came", joined.Sub(c.Since))
	}
	locktest.Release(t, second)
	if c := until(1); c.Since.After(joined) {
		t.Errorf("the first reader has the lock since %v after it came", c.Since.Sub(joined))
	}
	locktest.Release(t, first)
}

// Of very many readers, a read of the lock returns some. That others are among them is no change.
func TestWatch_ManyReadersThatStayAreNoChange(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{Poll: 20 * time.Millisecond})
	fields := []string{"HSET", k.Name, "mode", "read"}
	for i := range 1500 {
		fields = append(fields, fmt.Sprintf("%s%d", locktest.Redisson, i), "1")
	}
	locktest.OK(t, k.Do(t, fields...).Error())
	next, _ := watch(t, s.ReadWriteLock(k.LockName).Read())
	if c := next(); c.Holders != 1500 || len(c.Owners) == 1500 {
		t.Fatalf("%d readers, of which %d are shown", c.Holders, len(c.Owners))
	}
	began := reads(t, k)
	redistest.Eventually(t, "some reads", func() bool { return reads(t, k) >= began+5 })
	k.Do(t, "DEL", k.Name)
	if c := next(); c.Locked {
		t.Errorf("a change, though the same readers hold the lock: %d, of which %d are shown", c.Holders, len(c.Owners))
	}
}

// reads returns how many scripts the server has run.
func reads(t *testing.T, k locktest.Key) (n int) {
	t.Helper()
	stats := locktest.Must(k.Do(t, "INFO", "commandstats").ToString())(t)
	for _, line := range strings.Split(stats, "\r\n") {
		for _, script := range []string{"cmdstat_eval:calls=", "cmdstat_evalsha:calls="} {
			if of, is := strings.CutPrefix(line, script); is {
				calls, _, _ := strings.Cut(of, ",")
				n += locktest.Must(strconv.Atoi(calls))(t)
			}
		}
	}
	return n
}
