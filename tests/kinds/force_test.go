package kinds_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A forced release that has failed, and reaches Redis late, frees nothing: neither the next holder of another process,
// nor the next term of the same process.
func TestForceRelease_FreesNothingWhenLate(t *testing.T) {
	t.Parallel()
	for kind, of := range locktest.Kinds {
		for _, next := range []string{"another process", "the same process"} {
			t.Run(kind+"/"+next, func(t *testing.T) {
				t.Parallel()
				a, k := locktest.New(t, lockkeeper.Config{})
				proxy := redistest.NewProxy(t, k.Server.Addr())
				operator := locktest.Open(t, proxy.URL(), lockkeeper.Config{CallTimeout: 300 * time.Millisecond})
				b := a
				if next == "another process" {
					b = locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
				}
				first := locktest.Acquire(t, of(a, k.LockName))
				var late []*redistest.Held
				for _, script := range []*scripts.Script{scripts.ForceRelease, scripts.FairForceRelease, scripts.ReadWriteForceRelease} {
					k.Do(t, "SCRIPT", "LOAD", script.Source) // the test delays the EVALSHA
					if only := forceOf(kind); only == nil || only == script {
						late = append(late, proxy.Hold(redistest.Script(script.SHA), redistest.Silent))
					}
				}
				locktest.Fails(of(operator, k.LockName).ForceRelease(locktest.Within(t)))(t, lockkeeper.ErrUnavailable)
				// The commands of a MultiLock's members are sent one by one. Once a command is held, no further replies
				// arrive.
				late = slices.DeleteFunc(late, func(each *redistest.Held) bool { _, caught := each.Caught(); return !caught })
				if len(late) == 0 {
					t.Fatal("no command is late")
				}
				locktest.Release(t, first)
				hold := locktest.Acquire(t, of(b, k.LockName))
				for _, each := range late {
					locktest.Equal(t, each.Release(t), "0", "the late command has the reply %q")
				}
				locktest.Ensure(t, hold, time.Second)
				locktest.ExpectValid(t, hold)
				locktest.Release(t, hold)
			})
		}
	}
}

// forceOf is the script that frees a lock of a kind by force; nil for a MultiLock, which has several.
func forceOf(kind string) *scripts.Script {
	return map[string]*scripts.Script{
		"plain": scripts.ForceRelease, "fenced": scripts.ForceRelease, "fair": scripts.FairForceRelease,
		"read": scripts.ReadWriteForceRelease, "write": scripts.ReadWriteForceRelease,
	}[kind]
}

// A forced release that names owners frees these, wherever they are, and no other. It reports whether one of them
// held the lock.
func TestForceRelease_FreesOnlyNamedOwners(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, kind string, of locktest.Kind) {
		a, k := locktest.New(t, lockkeeper.Config{Watchdog: 3 * time.Second})
		b := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
		ctx := locktest.Within(t)
		owners := func() []string {
			t.Helper()
			status, err := of(b, k.LockName).Inspect(ctx)
			if err != nil || len(status.Owners) == 0 {
				t.Fatalf("the owners are %v: %v", status.Owners, err)
			}
			return status.Owners
		}
		force := func(s *locktest.Site, owners []string, held bool) {
			t.Helper()
			locktest.ForceRelease(t, of(s, k.LockName), held, owners...)
		}
		hold := locktest.Acquire(t, of(a, k.LockName))
		earlier := owners()
		locktest.Release(t, hold)
		force(b, earlier, false)
		hold = locktest.Acquire(t, of(a, k.LockName))
		force(a, earlier, false)
		force(b, append(earlier, locktest.Redisson), false)
		locktest.Ensure(t, hold, time.Second)
		locktest.ExpectValid(t, hold)
		if kind != "multi" {
			p, lock := b.Probe(t), locktest.KindMessage(kind, k.LockName)
			if locktest.Ask[*messages.ForceReleased](t, p, &messages.ForceRelease{Lock: lock, Owners: earlier}).WasHeld {
				t.Error("the forced release reports that an earlier owner held the lock")
			}
			for _, none := range []string{"email", strings.ToUpper(locktest.Redisson)} {
				locktest.ExpectRefusal(t, p, &messages.ForceRelease{Lock: lock, Owners: []string{none}}, messages.Reason_REASON_INVALID, "owner")
			}
		}
		force(b, append(earlier, owners()...), true)
		locktest.EndedBy(t, hold, messages.Reason_REASON_GONE, messages.Reason_REASON_TAKEN)

		hold = locktest.Acquire(t, of(a, k.LockName))
		force(a, append(owners(), earlier...), true)
		locktest.EndedBy(t, hold, messages.Reason_REASON_FORCED)
		locktest.Fails(of(b, k.LockName).ForceRelease(ctx, "email"))(t, lockkeeper.ErrInvalid)
		locktest.ExpectGranted(t, of(b, k.LockName))
	})
}

// A forced release of a RedLock frees the owners that it names.
func TestForceRelease_FreesNamedOwnersOfRedLock(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p, other := q.party(t), q.party(t)
	hold := locktest.Acquire(t, p.Lock)
	status, err := other.Lock.Inspect(locktest.Within(t))
	if err != nil || len(status.Owners) != 1 {
		t.Fatalf("the owners are %v: %v", status.Owners, err)
	}
	locktest.ForceRelease(t, other.Lock, false, locktest.Redisson)
	locktest.Ensure(t, hold, 100*time.Millisecond)
	locktest.ForceRelease(t, other.Lock, true, status.Owners...)
	locktest.EndedBy(t, hold)
}

// busy is a Redis in which the script of another application runs until end is called: it refuses commands.
func busy(t *testing.T, server *redistest.Server) (end func()) {
	t.Helper()
	client, ended := locktest.Connect(t, server.URL()), make(chan struct{})
	t.Cleanup(client.Close)
	go func() {
		defer close(ended)
		client.Do(t.Context(), client.B().Eval().Script("while true do end").Numkeys(0).Build())
	}()
	redistest.Eventually(t, "Redis is busy", func() bool {
		err := server.Do(t, "GET", "x").Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	return func() {
		server.Do(t, "SCRIPT", "KILL")
		<-ended
	}
}

// A forced release that names no owner is refused for the moment, and then the machine sleeps. It is not sent again when
// its call should have ended long ago: it would free the holder of the next morning.
func TestForceRelease_IsNotSentAgainAfterItsTime(t *testing.T) {
	locktest.EachKind(t, func(t *testing.T, _ string, of locktest.Kind) {
		server := redistest.Start(t, "--lua-time-limit", "10")
		proxy := redistest.NewProxy(t, server.Addr())
		operator, machine := locktest.OpenSuspendable(t, proxy.URL(), lockkeeper.Config{})
		other := locktest.Open(t, server.URL(), lockkeeper.Config{})
		const name = "force"
		if _, err := of(operator, name).Inspect(locktest.Within(t)); err != nil { // then Redis knows the script
			t.Fatal(err)
		}
		stuck := locktest.Acquire(t, of(other, name))
		end := busy(t, server)
		tries := countCommands(proxy, func(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") })
		freed := locktest.Go(func() error {
			_, err := of(operator, name).ForceRelease(locktest.Within(t))
			return err
		})
		redistest.Eventually(t, "it was tried several times", func() bool { return tries.Load() >= 5 })
		machine.Sleep(8 * time.Hour)
		end()
		locktest.Release(t, stuck)
		next := locktest.Acquire(t, of(other, name))
		locktest.IsError(t, <-freed, lockkeeper.ErrUnavailable)
		locktest.Ensure(t, next, 29690*time.Millisecond) // which asks Redis
		locktest.ExpectValid(t, next)
		locktest.Release(t, next)
	})
}
