package expirable_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A permit whose grant came late has too little left for the drain of its work. It is renewed first.
func TestExpirable_LateGrantIsRenewedForTheDrain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := locktest.Open(t, proxy.URL(), lockkeeper.Config{Watchdog: 3 * time.Second, CallTimeout: 4 * time.Second})
	p := s.ExpirableSemaphore(redistest.Name(t))
	locktest.Must(p.TrySetPermits(t.Context(), 1))(t)
	proxy.Freeze(true)
	time.AfterFunc(2200*time.Millisecond, func() { proxy.Freeze(false) })
	ran := false
	if err := p.Do(locktest.Within(t), func(context.Context) error { ran = true; return nil }, lockkeeper.WithDrain(1200*time.Millisecond)); err != nil || !ran {
		t.Errorf("the work ran: %v, %v", ran, err)
	}
}
