package multi_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A MultiLock that is refused because of another lock of the same System leaves that alone.
func TestMultiLockLeavesOthersOfItsSystemAlone(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	a, b, c := redistest.Name(t), redistest.Name(t), redistest.Name(t)
	multi := func(names ...string) *lockkeeper.Lock {
		var locks []*lockkeeper.Lock
		for _, name := range names {
			locks = append(locks, s.Lock(name))
		}
		return lockkeeper.MultiLock(locks...)
	}
	for name, pair := range map[string][2]*lockkeeper.Lock{
		"multi against multi": {multi(a, b), multi(b, c)},
		"multi against plain": {s.Lock(b), multi(b, c)},
		"plain against multi": {multi(a, b), s.Lock(b)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := locktest.Within(t)
			hold, err := pair[0].Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if other, err := pair[1].TryAcquire(ctx); err == nil {
					t.Error("both hold it")
					_ = other.Release(ctx)
					break
				} else if !errors.Is(err, lockkeeper.ErrHeld) {
					t.Fatal(err)
				}
			}
			if err := hold.Release(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
