package readwrite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Every reader has a lease of its own: what becomes of one does not shorten another's,
// nor does a living reader keep that of a dead process alive.
func TestReadersLeasesAreTheirOwn(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	const long, short = 2 * time.Second, 300 * time.Millisecond
	a, b, c := locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly)
	t.Run("a shorter one ends or is released", func(t *testing.T) {
		name := redistest.Name(t)
		lock := func(s *locktest.Site) *lockkeeper.ReadWrite { return s.ReadWriteLock(name) }
		began := time.Now()
		longer := locktest.Acquire(t, lock(a).Read(), lockkeeper.WithLease(long))
		shorter := locktest.Acquire(t, lock(b).Read(), lockkeeper.WithLease(short))
		locktest.Release(t, locktest.Acquire(t, lock(b).Read(), lockkeeper.WithLease(short)))
		writer := locktest.AcquireSoon(locktest.Within(t), lock(c).Write())
		locktest.IsLost(t, shorter)
		locktest.IsLost(t, longer)
		g := locktest.Got(t, writer)
		// A lease is given up a little before it ends.
		if early := g.At.Sub(began); early < 9*long/10 {
			t.Errorf("a writer was let in %v after a reader that had the lock for %v", early, long)
		}
		locktest.Release(t, g.Hold)
	})
	t.Run("all enter when a writer's ends", func(t *testing.T) {
		name := redistest.Name(t)
		hold := locktest.Acquire(t, a.ReadWriteLock(name).Write(), lockkeeper.WithLease(short))
		first, second := locktest.AcquireSoon(locktest.Within(t), b.ReadWriteLock(name).Read()), locktest.AcquireSoon(locktest.Within(t), c.ReadWriteLock(name).Read())
		locktest.IsLost(t, hold)
		one := locktest.Got(t, first).Hold
		locktest.Release(t, locktest.Got(t, second).Hold) // while the first reads
		locktest.Release(t, one)
	})
	t.Run("a re-entry", func(t *testing.T) {
		lock := a.ReadWriteLock(redistest.Name(t))
		hold := locktest.Acquire(t, lock.Read(), lockkeeper.WithLease(short))
		inner, err := lock.Read().Acquire(hold.Context(), lockkeeper.WithLease(short))
		if err != nil {
			t.Fatal(err)
		}
		locktest.Release(t, inner)
		locktest.Release(t, locktest.Acquire(t, b.ReadWriteLock(lock.Read().Name()).Write())) // when the first has ended
		locktest.IsLost(t, hold)
	})
	t.Run("a dead process", func(t *testing.T) {
		proxy := redistest.NewProxy(t, server.Addr())
		dead := locktest.Open(t, proxy.URL(), locktest.Briefly)
		dead.Lame = true
		name := redistest.Name(t)
		lost := locktest.Acquire(t, dead.ReadWriteLock(name).Read())
		lives := locktest.Acquire(t, a.ReadWriteLock(name).Read())
		proxy.Refuse(true)
		proxy.Cut()
		locktest.IsLost(t, lost)
		locktest.Lasts(t, 3*locktest.Watchdog/2, lives)
		writer := locktest.AcquireSoon(locktest.Within(t), b.ReadWriteLock(name).Write())
		locktest.AwaitWaiters(t, b.ReadWriteLock(name).Write(), 1)
		locktest.Release(t, lives)
		locktest.Release(t, locktest.Got(t, writer).Hold)
		proxy.Heal()
	})
}

// What readers and writers see of each other, step by step.
func TestReadWriteSteps(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, other := locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly)
	for _, name := range []string{redistest.Name(t), "{" + redistest.Name(t) + "}:abc:key"} {
		lock, theirs := s.ReadWriteLock(name), other.ReadWriteLock(name)
		if wasHeld, err := theirs.Read().ForceRelease(locktest.Within(t)); err != nil || wasHeld {
			t.Fatalf("a free lock was force-released: %v, %v", wasHeld, err)
		}
		write := locktest.Acquire(t, lock.Write())
		locktest.RefusedTry(t, theirs.Read())
		locktest.RefusedTry(t, theirs.Write())
		// Without its end, since the context of the write hold ends with that.
		read, err := lock.Read().Acquire(context.WithoutCancel(write.Context()))
		if err != nil {
			t.Fatal(err)
		}
		locktest.RefusedTry(t, theirs.Read())
		var readers []<-chan locktest.Grant
		for range 20 {
			readers = append(readers, locktest.AcquireSoon(locktest.Within(t), theirs.Read()))
		}
		locktest.AwaitWaiters(t, theirs.Read(), 20)
		locktest.Release(t, write) // the writer has become a reader, and lets the others in
		for _, r := range readers {
			defer locktest.Release(t, locktest.Got(t, r).Hold)
		}
		if _, err := lock.Write().Acquire(read.Context()); !errors.Is(err, lockkeeper.ErrReentry) {
			t.Errorf("a reader became a writer: %v", err)
		}
		locktest.RefusedTry(t, lock.Write())
		status, err := theirs.Read().Inspect(locktest.Within(t))
		if err != nil || !status.Locked || !status.Shared || status.Holders != 2 {
			t.Errorf("held by readers in 2 processes, and the state is %+v, %v", status, err)
		}
		locktest.Lasts(t, 3*locktest.Watchdog/2, read) // renewal survives the change
		locktest.Release(t, read)
		locktest.RefusedTry(t, lock.Write()) // their readers still have it
	}
}
