package kinds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A forced release that has failed, and reaches Redis late, frees nothing: neither the next holder of another
// process, nor the next term of the same one.
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
				_, err := of(operator, k.LockName).ForceRelease(locktest.Within(t))
				locktest.IsError(t, err, lockkeeper.ErrUnavailable)
				locktest.Release(t, first)
				hold := locktest.Acquire(t, of(b, k.LockName))
				for _, each := range late {
					if reply := each.Release(t); reply != "0" {
						t.Errorf("the late command has the reply %q", reply)
					}
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
	for kind, of := range locktest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
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
			force := func(s *locktest.Site, owners []string, want bool) {
				t.Helper()
				if was, err := of(s, k.LockName).ForceRelease(ctx, owners...); was != want || err != nil {
					t.Errorf("a forced release of %v reports %v, %v", owners, was, err)
				}
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
			force(a, owners(), true)
			locktest.EndedBy(t, hold, messages.Reason_REASON_FORCED)
			_, err := of(b, k.LockName).ForceRelease(ctx, "email")
			locktest.IsError(t, err, lockkeeper.ErrInvalid)
			locktest.ExpectGranted(t, of(b, k.LockName))
		})
	}
}

// Of readers in several processes, a forced release ends the holds of the ones that it names.
func TestForceRelease_EndsOnlyNamedReaders(t *testing.T) {
	t.Parallel()
	k, a, b := readWrite(t, lockkeeper.Config{Watchdog: 3 * time.Second})
	first := locktest.Acquire(t, k.read(a))
	status, err := k.read(b).Inspect(locktest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	second := locktest.Acquire(t, k.read(b))
	if was, err := k.read(b).ForceRelease(locktest.Within(t), status.Owners...); !was || err != nil {
		t.Errorf("a forced release of %v reports %v, %v", status.Owners, was, err)
	}
	locktest.EndedBy(t, first)
	locktest.Ensure(t, second, time.Second)
	locktest.ExpectValid(t, second)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(b))
	locktest.Release(t, second)
	locktest.ExpectGranted(t, k.write(a))
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
	if was, err := other.Lock.ForceRelease(locktest.Within(t), locktest.Redisson); was || err != nil {
		t.Errorf("the forced release of another owner reports %v, %v", was, err)
	}
	locktest.Ensure(t, hold, 100*time.Millisecond)
	if was, err := other.Lock.ForceRelease(locktest.Within(t), status.Owners...); !was || err != nil {
		t.Errorf("a forced release of %v reports %v, %v", status.Owners, was, err)
	}
	locktest.EndedBy(t, hold)
}
