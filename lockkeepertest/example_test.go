package lockkeepertest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/lockkeepertest"
)

// ship is code under test: it works under a lock, and stops when the lock is lost.
func ship(ctx context.Context, locks *lockkeeper.System) error {
	return locks.Lock("orders").Do(ctx, func(ctx context.Context) error {
		<-ctx.Done() // the work takes long
		return context.Cause(ctx)
	})
}

// This test checks what the program does when it loses the lock.
func TestShipping_FailsWithoutTheLock(t *testing.T) {
	locks := lockkeepertest.Open(t, lockkeeper.Config{})
	done := make(chan error, 1)
	go func() { done <- ship(t.Context(), locks) }()

	lockkeepertest.Lose(t, locks.Lock("orders"))

	if err := <-done; !errors.Is(err, lockkeeper.ErrLost) {
		t.Errorf("ship returned %v", err)
	}
}
