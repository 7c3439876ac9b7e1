package locks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// What was never made says so, and does not panic.
func TestNothingToLockWith(t *testing.T) {
	for _, make := range []func() (*lockkeeper.System, error){
		func() (*lockkeeper.System, error) { return lockkeeper.New(nil, nil, lockkeeper.Config{}) },
		func() (*lockkeeper.System, error) {
			return lockkeeper.New(locktest.QuietActorSystem(), nil, lockkeeper.Config{})
		},
	} {
		if s, err := make(); s != nil || !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("New: %v, %v", s, err)
		}
	}
	actors := locktest.QuietActorSystem()
	none := lockkeeper.From(actors)
	if none != nil {
		t.Fatal("a system out of nowhere")
	}
	if err := none.Close(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("Close: %v", err)
	}
	if id := none.ID(); id != "" {
		t.Errorf("ID: %q", id)
	}
	answer, err := actors.Root.RequestFuture(none.Guardian(), &messages.Inspect{}, redistest.Limit).Result()
	if !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("answered %v, %v", answer, err)
	}
	if _, err := lockkeeper.RedLock(none, none, none); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("RedLock: %v", err)
	}
	var noReadWrite *lockkeeper.ReadWrite
	var noRed *lockkeeper.Red
	for what, lock := range map[string]*lockkeeper.Lock{
		"nil": nil, "zero": {}, "of a nil system": none.Lock("x"), "fenced": none.FencedLock("x"), "fair": none.FairLock("x"),
		"read": none.ReadWriteLock("x").Read(), "write": none.ReadWriteLock("x").Write(), "nil read": noReadWrite.Read(),
		"nil write": noReadWrite.Write(), "red": noRed.Lock("x"), "multi": lockkeeper.MultiLock(nil), "multi of a nil system": lockkeeper.MultiLock(none.Lock("x")),
		"multi of a zero lock": lockkeeper.MultiLock(&lockkeeper.Lock{}),
	} {
		t.Run(what, func(t *testing.T) {
			_ = lock.Name()
			_, acquire := lock.Acquire(locktest.Within(t))
			_, try := lock.TryAcquire(locktest.Within(t), lockkeeper.WithLease(time.Second))
			_, force := lock.ForceRelease(locktest.Within(t))
			_, inspect := lock.Inspect(locktest.Within(t))
			for _, err := range []error{acquire, try, force, inspect} {
				locktest.IsError(t, err, lockkeeper.ErrInvalid)
				locktest.Says(t, err.Error(), "nil")
			}
		})
	}
}
