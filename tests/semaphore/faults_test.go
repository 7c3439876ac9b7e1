package semaphore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// useTogether acquires and releases permits on several goroutines; some requests may fail with one of the errors.
func useTogether(t *testing.T, f *lockkeeper.Semaphore, rounds int, may ...error) {
	t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range rounds {
				err := f.Acquire(locktest.Within(t), 1)
				if err == nil {
					err = f.Release(locktest.Within(t), 1)
				}
				if err != nil && !slices.ContainsFunc(may, func(e error) bool { return errors.Is(err, e) }) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A crash of the actor, on any message, neither creates nor loses permits; a release takes effect in any case.
func TestSemaphore_CrashKeepsTheNumber(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"*request.Call", "*kinds.Reply", "actors.wakeUp", "*actors.transferred", "actors.listening", "*actor.Started"} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+strings.TrimPrefix(m, "*"), func(t *testing.T) {
				t.Parallel()
				faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{Poll: 50 * time.Millisecond})
				f, other := s.Semaphore(k.LockName), locktest.Open(t, k.Server.URL(), lockkeeper.Config{}).Semaphore(k.LockName)
				k.Do(t, "SET", k.LockName, "1")
				if hit := locktest.InTurn(m, m, m); when == "before" {
					faults.Hit(hit, nil)
				} else {
					faults.Hit(nil, hit)
				}
				redistest.Eventually(t, "all crashes", func() bool {
					locktest.OK(t, other.Acquire(locktest.Within(t), 1))
					waiting := acquireSoon(t, f, 1)
					select {
					case err := <-waiting: // the actor has crashed
						locktest.IsError(t, err, lockkeeper.ErrCrashed)
						locktest.OK(t, other.Release(locktest.Within(t), 1))
					case <-time.After(100 * time.Millisecond):
						locktest.OK(t, other.Release(locktest.Within(t), 1))
						locktest.OK(t, locktest.Await(t, "the permit", waiting))
						locktest.OK(t, f.Release(locktest.Within(t), 1))
					}
					if m == "actors.listening" {
						redistest.Eventually(t, "the end of the subscription", func() bool {
							return k.Server.Subscribers(t, keyspace.PermitsChannel(k.LockName)) == 0
						})
					}
					return faults.Count.Load() == 3 || m == "*actor.Started" // each life of an actor has one
				})
				redistest.Eventually(t, "the permit to be back", func() bool { return k.Number(t, "GET", k.LockName) == 1 })
			})
		}
	}
}

// A request that a crash interrupts is answered, and counted, also if its memory was used by an earlier request, which
// the actor has handled.
func TestSemaphore_CrashAnswersItsRequest(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	f := s.Semaphore(k.LockName)
	k.Do(t, "SET", k.Name, "1")
	crash := func() {
		faults.Hit(locktest.Once("*request.Call"), nil)
		locktest.Fails(f.Available(locktest.Within(t)))(t, lockkeeper.ErrCrashed)
	}
	for range 5 {
		locktest.Must(f.Available(locktest.Within(t)))(t)
		crash()
	}
	k.Do(t, "SET", k.LockName, "1")
	for range 5 {
		locktest.OK(t, f.Acquire(locktest.Within(t), 1))
		waiting := acquireSoon(t, f, 1)
		s.AwaitWaiting(t, 1)
		locktest.OK(t, f.Release(locktest.Within(t), 1)) // handed off, so that no reply of Redis comes between
		crash()
		locktest.OK(t, locktest.Await(t, "the permit", waiting))
		locktest.OK(t, f.Release(locktest.Within(t), 1))
	}
}

// An idle actor leaves, and so do its subscription and its memory. Another one starts when it is needed, and its
// commands count as new ones. The record of the last command stays, also when one only reads the number of permits.
func TestSemaphore_IdleActorLeaves(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Idle: 20 * time.Millisecond})
	f := s.Semaphore(k.LockName)
	k.Do(t, "SET", k.LockName, "2")
	before := s.Processes()
	for range 3 {
		useTogether(t, f, 2)
		redistest.Eventually(t, "the actor to leave", func() bool { return s.Processes() == before })
		k.Server.AwaitSubscribers(t, "redisson_sc:{"+k.LockName+"}", 0)
	}
	for range 2 { // the first may remove the record before the second reads
		locktest.Equal(t, locktest.Must(f.Available(locktest.Within(t)))(t), 2, "%d are free in the end")
		redistest.Eventually(t, "the actor to leave", func() bool { return s.Processes() == before })
	}
	if left := k.Server.Keys(t, "lockkeeper_calls:{"+k.LockName+"}:*"); len(left) != 1 {
		t.Errorf("the records are %v", left)
	}
}

// Close refuses all waiters, gives back permits that no request got, and returns an error if Redis does not confirm
// it.
func TestClose_GivesBackPermits(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Shared(t), locktest.ShortCallTimeout)
	s.Do(t, "SET", s.LockName, "1")
	f := s.Semaphore(s.LockName)
	locktest.OK(t, f.Acquire(locktest.Within(t), 1))
	waiting := acquireSoon(t, f, 1)
	awaitListeners(t, s.Key, 1)
	go func() { _ = f.Release(locktest.Within(t), 1) }() // handed off, or given back
	locktest.Check(t, locktest.Await(t, "the permit", waiting))
	s.Proxy.Freeze(true)
	taking := acquireSoon(t, f, 1)
	s.AwaitWaiting(t, 1)
	closed := make(chan error, 1)
	ctx := locktest.Within(t)
	go func() { closed <- s.Close(ctx) }()
	locktest.IsError(t, locktest.Await(t, "the refusal", taking), lockkeeper.ErrClosed)
	s.Proxy.Freeze(false)
	locktest.OK(t, locktest.Await(t, "the end", closed))
	locktest.IsError(t, f.TryAcquire(ctx, 1), lockkeeper.ErrClosed)
	if n := s.Number(t, "GET", s.LockName); n != 0 {
		t.Errorf("%d are free, want 0: one is taken", n)
	}
}

// An actor that is stopped from outside while it takes a permit gives the permit back when it comes.
func TestSemaphore_StoppedActorGivesBackItsPermit(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{})
	s.Do(t, "SET", s.LockName, "1")
	s.SkipCloseCheck = true // Close does not know of it then
	f := s.Semaphore(s.LockName)
	useTogether(t, f, 1)
	s.Proxy.Delay(300 * time.Millisecond)
	waiting := acquireSoon(t, f, 1)
	redistest.Eventually(t, "the permit to be taken", func() bool { return s.Number(t, "GET", s.LockName) == 0 })
	locktest.OK(t, s.Actors.Root.StopFuture(s.Guardian()).Wait())
	locktest.IsError(t, locktest.Await(t, "the refusal", waiting), lockkeeper.ErrClosed)
	redistest.Eventually(t, "the permit to be back", func() bool { return s.Number(t, "GET", s.LockName) == 1 })
}

// An actor that is given up finishes its release, and the commands of the next actor do not undo it.
func TestSemaphore_GivenUpActorFinishesItsRelease(t *testing.T) {
	t.Parallel()
	faults := &locktest.FaultInjector{}
	s := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{CallTimeout: 3 * time.Second}, faults.Middleware)
	s.Do(t, "SET", s.LockName, "1")
	f := s.Semaphore(s.LockName)
	locktest.OK(t, f.Acquire(locktest.Within(t), 1))
	s.Proxy.Refuse(true)
	s.Proxy.Cut()
	locktest.IsError(t, f.Release(locktest.Within(t), 1), lockkeeper.ErrUnavailable)
	faults.Hit(func(m any) bool { return faultinject.TypeOf(m) == "*messages.InspectPermits" }, nil)
	p := s.Probe(t)
	for range 11 {
		locktest.Ask[*messages.PermitsRefused](t, p, &messages.InspectPermits{Semaphore: &messages.Semaphore{Name: s.LockName}})
	}
	faults.Hit(nil, nil)
	s.Proxy.Refuse(false)
	var err error
	redistest.Eventually(t, "the next actor", func() bool { // the last crash may not have ended the other yet
		err = f.AddPermits(locktest.Within(t), 1)
		return !errors.Is(err, lockkeeper.ErrCrashed)
	})
	locktest.OK(t, err)
	redistest.Eventually(t, "both permits", func() bool { return s.Number(t, "GET", s.LockName) == 2 })
}

// commandRecords are the records of commands in Redis.
func commandRecords(t *testing.T, server *redistest.Server) []string {
	t.Helper()
	return server.Keys(t, "lockkeeper_calls:*")
}

// A closed System leaves no record of a command about what it has used recently, unless a copy of the command may
// still arrive, and would take effect twice.
func TestClose_LeavesNoRecordOfACommand(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	k := locktest.NewKey(t, server)
	locktest.Must(s.Semaphore(k.LockName).TrySetPermits(t.Context(), 3, 0))(t)
	useTogether(t, s.Semaphore(k.LockName), 3)
	locktest.Must(s.Latch(k.LockName+" latch").TrySetCount(t.Context(), 1))(t)
	locktest.OK(t, s.Latch(k.LockName+" latch").CountDown(t.Context()))
	permits := locktest.NewKey(t, server)
	locktest.Must(s.ExpirableSemaphore(permits.LockName).TrySetPermits(t.Context(), 2))(t)
	usePermit(t, s, permits.LockName)
	locktest.Equal(t, len(commandRecords(t, server)), 3, "%d records while they are used")
	locktest.Stop(t, s)
	left := server.Keys(t, "*")
	slices.Sort(left)
	want := []string{k.Name, permits.Name}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left in Redis: %q, want %q", left, want)
	}
	server.Do(t, "DEL", k.Name, permits.Name)

	// A reply is lost, and then another actor takes over.
	for what, use := range map[string]func(s *locktest.Remote) error{
		"a semaphore": func(s *locktest.Remote) error { return s.Semaphore(s.LockName).AddPermits(t.Context(), 3) },
		"permits":     func(s *locktest.Remote) error { return s.ExpirableSemaphore(s.LockName).AddPermits(t.Context(), 3) },
	} {
		for _, idle := range []bool{false, true} {
			s := locktest.NewRemote(t, server, lockkeeper.Config{Idle: time.Second}) // the second actor must not leave before Close
			before := s.Processes()
			loss := s.Proxy.DropRepliesTo(func(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") }, 1, redistest.Lost)
			locktest.OK(t, use(s))
			loss.Wait(t)
			if idle {
				redistest.Eventually(t, "the actor to retire", func() bool { return s.Processes() == before })
				locktest.OK(t, use(s))
			}
			locktest.Stop(t, s)
			if left := commandRecords(t, server); len(left) != 1 || s.Number(t, "PTTL", left[0]) <= 0 {
				t.Errorf("%s: after a reply was lost, idle %v, left in Redis: %q", what, idle, left)
			}
			s.Do(t, "FLUSHALL")
		}
	}
}

// usePermit acquires and releases a permit of an expirable semaphore.
func usePermit(t *testing.T, s *locktest.Site, name string) {
	t.Helper()
	permit := locktest.Must(s.ExpirableSemaphore(name).Acquire(locktest.Within(t)))(t)
	locktest.OK(t, permit.Release(locktest.Within(t)))
}

// The error of a Close that Redis has not confirmed names what becomes of each kind.
func TestClose_ReportsWhatRemains(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		begin func(s *locktest.Site, name string)
		words []string
		not   string
	}{
		"a lock": {func(s *locktest.Site, name string) { locktest.Acquire(t, s.Lock(name)) }, []string{"locks and expirable permits are free when their leases end"}, "semaphore"},
		"a semaphore": {func(s *locktest.Site, name string) {
			locktest.OK(t, s.Semaphore(name).AddPermits(t.Context(), 1))
			locktest.OK(t, s.Semaphore(name).Acquire(t.Context(), 1))
		}, []string{"permits of a semaphore may stay taken"}, "latch"},
		"a latch": {func(s *locktest.Site, name string) {
			locktest.Must(s.Latch(name).TrySetCount(t.Context(), 1))(t)
		}, []string{"count-downs of a latch may be missing"}, "semaphore"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{CallTimeout: 200 * time.Millisecond})
			s.SkipCloseCheck = true
			test.begin(s, k.LockName)
			k.Server.Pause(t)
			defer k.Server.Resume(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			switch what {
			case "a semaphore":
				_ = s.Semaphore(k.LockName).Release(ctx, 1)
			case "a latch":
				_ = s.Latch(k.LockName).CountDown(ctx)
			}
			closing, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer end()
			err := s.Close(closing)
			if err == nil || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), test.not) {
				t.Fatalf("closed: %v", err)
			}
			locktest.ExpectWords(t, err.Error(), test.words...)
		})
	}
}
