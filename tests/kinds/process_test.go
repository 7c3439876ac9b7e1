package kinds_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// isThis checks that a process is the process of the test, by the record of its System.
func isThis(t *testing.T, p lockkeeper.Process, application string, since time.Time) {
	t.Helper()
	host, _ := os.Hostname()
	if p.Application != application || p.Host != host || p.PID != os.Getpid() || p.Overdue || p.Seen > time.Minute ||
		p.Since.Before(since.Add(-time.Second)) || p.Since.After(time.Now().Add(time.Second)) {
		t.Errorf("the holder is %+v, want %s in pid %d on %s since %v", p, application, os.Getpid(), host, since)
	}
}

// Inspect of a lock of any kind shows which process holds it, although a MultiLock and a RedLock use clients of their
// own.
func TestInspect_ShowsHoldersProcess(t *testing.T) {
	t.Parallel()
	began := time.Now()
	servers := redistest.SharedServers(t, 3)
	locktest.AgeServers(t, servers...)
	site := func(application string) (all []*locktest.Site) {
		for _, server := range servers {
			all = append(all, locktest.Open(t, server.URL(), lockkeeper.Config{Application: application, Watchdog: locktest.Watchdog}))
		}
		return all
	}
	ours, theirs := site("ours"), site("theirs")
	red := func(sites []*locktest.Site, name string) *lockkeeper.Lock {
		home, other := sites[0], sites[1]
		if home == theirs[0] { // its record is on another server than ours
			home, other = other, home
		}
		red := locktest.Must(lockkeeper.NewRedLock(home.System, other.System, sites[2].System))(t)
		return red.Lock(name)
	}
	kinds := map[string]func(sites []*locktest.Site, name string) *lockkeeper.Lock{"red": red,
		"multi of servers": func(sites []*locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(sites[1].Lock(name), sites[2].Lock(name+"2"))
		},
	}
	for kind, lock := range locktest.Kinds {
		kinds[kind] = func(sites []*locktest.Site, name string) *lockkeeper.Lock { return lock(sites[0], name) }
	}
	longest := time.Hour
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			name := redistest.Name(t)
			hold := locktest.AcquireIn(t, locktest.Within(t), lock(theirs, name), lockkeeper.WithNote("note of "+kind))
			for _, from := range [][]*locktest.Site{theirs, ours} {
				redistest.Eventually(t, "the holder's record", func() bool {
					status, err := lock(from, name).Inspect(locktest.Within(t))
					return err == nil && status.Process.Known() && status.Note == "note of "+kind
				})
				status, _ := lock(from, name).Inspect(locktest.Within(t))
				isThis(t, status.Process, "theirs", began)
			}
			showsWaiters(t, kind, lock(theirs, name), lock(ours, name), theirs, &longest)
			locktest.OK(t, hold.Release(locktest.Within(t)))
			if status, err := lock(ours, name).Inspect(locktest.Within(t)); err != nil ||
				status.Process != (lockkeeper.Process{}) || status.Note != "" {
				t.Errorf("a free lock has the process %v and the note %q, %v", status.Process, status.Note, err)
			}
		})
	}
}

// showsWaiters checks that other processes see how many requests wait in the process of the holder, and for how long
// that process has held the lock. Redis knows neither.
func showsWaiters(t *testing.T, kind string, here, there *lockkeeper.Lock, sites []*locktest.Site, longest *time.Duration) {
	t.Helper()
	wait, giveUp := context.WithCancel(locktest.Within(t))
	waiters := 2
	if kind == "read" { // they share the lock
		waiters = 0
	}
	var waiting []<-chan locktest.Grant
	for range waiters {
		waiting = append(waiting, locktest.AcquireSoon(wait, here))
	}
	locktest.AwaitWaiters(t, here, waiters)
	for _, site := range sites { // for a longer lease the record is written again
		*longest += time.Hour
		locktest.Release(t, locktest.Acquire(t, site.Lock(redistest.Name(t)), lockkeeper.WithLease(*longest)))
	}
	for _, from := range []*lockkeeper.Lock{here, there} {
		redistest.Eventually(t, "the waiters and the age of "+kind, func() bool {
			status, err := from.Inspect(locktest.Within(t))
			return err == nil && status.HolderWaiters == waiters && status.HeldAtLeast > 0
		})
	}
	giveUp()
	for _, w := range waiting {
		<-w
	}
}

// A holder without a record is shown as a client: Java, and an anonymous System.
func TestInspect_ShowsForeignHolderAsClient(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.TakeAs(t, locktest.Redisson, time.Minute)
	client := locktest.Redisson[:36]
	if p := s.Inspect(t, k).Process; p != (lockkeeper.Process{Client: client}) || p.String() != "client "+client+", which has no record" {
		t.Errorf("Java is %q: %+v", p, p)
	}
	answer := locktest.Future[*messages.Status](t, s, &messages.Inspect{Lock: k.Message()})
	if p := answer.Process; p.GetClient() != client || p.Since != nil {
		t.Errorf("by message, Java is %v", p)
	}
	k.Unlock(t)
	hold := s.Acquire(t, k)
	if p := s.Inspect(t, k).Process; p != (lockkeeper.Process{Client: s.ID()}) {
		t.Errorf("an anonymous System is %+v", p)
	}
	s.Release(t, hold)
}

// Every open System is listed, and its record outlasts its longest lease.
func TestSystems_ListsOpenSystems(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := locktest.Open(t, server.URL(), lockkeeper.Config{Application: "a"})
	b := locktest.Open(t, server.URL(), lockkeeper.Config{Application: "b"})
	locktest.Open(t, server.URL(), lockkeeper.Config{}) // Anonymous
	listed := func() (names []string) {
		all := locktest.Must(a.Systems(locktest.Within(t)))(t)
		for _, p := range all {
			names = append(names, p.Application)
		}
		slices.Sort(names)
		return names
	}
	expect := func(want ...string) {
		t.Helper()
		redistest.Eventually(t, "the Systems are listed", func() bool { return slices.Equal(listed(), want) })
	}
	expect("a", "b")
	k := locktest.NewKey(t, server)
	hold := b.Acquire(t, k, lockkeeper.WithLease(time.Hour))
	record := "{lockkeeper_systems}:" + b.ID()[:18]
	redistest.Eventually(t, "the record to outlive the lease", func() bool {
		return k.Number(t, "PTTL", record) > k.Number(t, "PTTL", k.Name)
	})
	b.Release(t, hold)
	locktest.Stop(t, b.System)
	if k.Number(t, "EXISTS", record) != 0 {
		t.Error("the record is there after Close")
	}
	expect("a")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Systems(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Inspect says how many requests wait in the process of the holder that it names, which of several readers may be another
// process than its own.
func TestInspect_CountsTheWaitersOfTheHolderThatItNames(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{})
	both := []*locktest.Site{here, there}
	wait, giveUp := context.WithCancel(locktest.Within(t))
	var waiting []<-chan locktest.Grant
	for _, s := range both {
		defer locktest.Release(t, locktest.Acquire(t, s.ReadWriteLock(k.LockName).Read()))
	}
	for _, s := range both {
		waiting = append(waiting, locktest.AcquireSoon(wait, s.ReadWriteLock(k.LockName).Write()))
		locktest.AwaitWaiters(t, s.ReadWriteLock(k.LockName).Write(), 1)
	}
	for _, s := range both {
		status := locktest.Must(s.ReadWriteLock(k.LockName).Read().Inspect(locktest.Within(t)))(t)
		want := -1 // the other has no record
		if keyspace.SystemOf(status.Holder) == keyspace.SystemOf(s.ID()) {
			want = 1
		}
		if status.HolderWaiters != want || want < 0 && status.HeldAtLeast != 0 {
			t.Errorf("%d requests wait in the process of %s, which has held the lock for %v at least; want %d",
				status.HolderWaiters, status.Holder, status.HeldAtLeast, want)
		}
	}
	giveUp()
	for _, w := range waiting {
		<-w
	}
}
