package locks_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A reader with a fixed lease keeps its own end when a reader under the watchdog joins
// and the lease in Redis becomes longer.
func TestFixedReaderKeepsItsEndWhenAnotherJoins(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	lock := s.ReadWriteLock(redistest.Name(t)).Read()
	fixed, err := lock.Acquire(locktest.Within(t), lockkeeper.WithLease(1500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	joined, err := lock.Acquire(locktest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	locktest.IsError(t, fixed.Ensure(locktest.Within(t), 10*time.Second), lockkeeper.ErrInvalid)
	if err := joined.Ensure(locktest.Within(t), 10*time.Second); err != nil {
		t.Error(err)
	}
	locktest.Await(t, "the end of the fixed lease", fixed.Context().Done())
	if fixed.Valid() {
		t.Error("a hold whose fixed lease is over is valid")
	}
	if !joined.Valid() {
		t.Error("the hold under the watchdog ended with the other")
	}
	locktest.Release(t, joined)
}
