package lockkeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Every reader has a lease of its own: what becomes of one does not shorten another's,
// nor does a living reader keep that of a dead process alive.
func TestReadersLeasesAreTheirOwn(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	const long, short = 2 * time.Second, 300 * time.Millisecond
	a, b, c := open(t, server.URL(), briefly), open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	t.Run("a shorter one ends or is released", func(t *testing.T) {
		name := redistest.Name(t)
		lock := func(s *site) *lockkeeper.ReadWrite { return s.ReadWriteLock(name) }
		began := time.Now()
		longer := mustAcquire(t, lock(a).Read(), lockkeeper.WithLease(long))
		shorter := mustAcquire(t, lock(b).Read(), lockkeeper.WithLease(short))
		release(t, mustAcquire(t, lock(b).Read(), lockkeeper.WithLease(short)))
		writer := acquiring(within(t), lock(c).Write())
		isLost(t, shorter)
		isLost(t, longer)
		g := got(t, writer)
		// A lease is given up a little before it ends.
		if early := g.at.Sub(began); early < 9*long/10 {
			t.Errorf("a writer was let in %v after a reader that had the lock for %v", early, long)
		}
		release(t, g.hold)
	})
	t.Run("all enter when a writer's ends", func(t *testing.T) {
		name := redistest.Name(t)
		hold := mustAcquire(t, a.ReadWriteLock(name).Write(), lockkeeper.WithLease(short))
		first, second := acquiring(within(t), b.ReadWriteLock(name).Read()), acquiring(within(t), c.ReadWriteLock(name).Read())
		isLost(t, hold)
		one := got(t, first).hold
		release(t, got(t, second).hold) // while the first reads
		release(t, one)
	})
	t.Run("a re-entry", func(t *testing.T) {
		lock := a.ReadWriteLock(redistest.Name(t))
		hold := mustAcquire(t, lock.Read(), lockkeeper.WithLease(short))
		inner, err := lock.Read().Acquire(hold.Context(), lockkeeper.WithLease(short))
		if err != nil {
			t.Fatal(err)
		}
		release(t, inner)
		release(t, mustAcquire(t, b.ReadWriteLock(lock.Read().Name()).Write())) // when the first has ended
		isLost(t, hold)
	})
	t.Run("a dead process", func(t *testing.T) {
		proxy := redistest.NewProxy(t, server.Addr())
		dead := open(t, proxy.URL(), briefly)
		dead.lame = true
		name := redistest.Name(t)
		lost := mustAcquire(t, dead.ReadWriteLock(name).Read())
		lives := mustAcquire(t, a.ReadWriteLock(name).Read())
		proxy.Refuse(true)
		proxy.Cut()
		isLost(t, lost)
		lasts(t, 3*watchdog/2, lives)
		writer := acquiring(within(t), b.ReadWriteLock(name).Write())
		waits(t, b.ReadWriteLock(name).Write(), 1)
		release(t, lives)
		release(t, got(t, writer).hold)
		proxy.Heal()
	})
}

// What readers and writers see of each other, step by step.
func TestReadWriteSteps(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, other := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	for _, name := range []string{redistest.Name(t), "{" + redistest.Name(t) + "}:abc:key"} {
		lock, theirs := s.ReadWriteLock(name), other.ReadWriteLock(name)
		if wasHeld, err := theirs.Read().ForceRelease(within(t)); err != nil || wasHeld {
			t.Fatalf("a free lock was force-released: %v, %v", wasHeld, err)
		}
		write := mustAcquire(t, lock.Write())
		refusedTry(t, theirs.Read())
		refusedTry(t, theirs.Write())
		// Without its end, since the context of the write hold ends with that.
		read, err := lock.Read().Acquire(context.WithoutCancel(write.Context()))
		if err != nil {
			t.Fatal(err)
		}
		refusedTry(t, theirs.Read())
		var readers []<-chan grant
		for range 20 {
			readers = append(readers, acquiring(within(t), theirs.Read()))
		}
		waits(t, theirs.Read(), 20)
		release(t, write) // the writer has become a reader, and lets the others in
		for _, r := range readers {
			defer release(t, got(t, r).hold)
		}
		if _, err := lock.Write().Acquire(read.Context()); !errors.Is(err, lockkeeper.ErrReentry) {
			t.Errorf("a reader became a writer: %v", err)
		}
		refusedTry(t, lock.Write())
		status, err := theirs.Read().Inspect(within(t))
		if err != nil || !status.Locked || !status.Shared || status.Holders != 2 {
			t.Errorf("held by readers in 2 processes, and the state is %+v, %v", status, err)
		}
		lasts(t, 3*watchdog/2, read) // renewal survives the change
		release(t, read)
		refusedTry(t, lock.Write()) // their readers still have it
	}
}
