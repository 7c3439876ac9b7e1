package locktest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Guard is a holder that records its notifications and when they came.
type Guard struct {
	Key
	How     string
	GiveUp  func(t testing.TB)
	Latency *latencyMeter
	valid   func() bool // nil for an actor, which cannot ask

	mu    sync.Mutex
	risks []time.Time
	lost  []Loss
}

// Loss is the notification of a loss.
type Loss struct {
	At     time.Time
	Reason messages.Reason
}

func (g *Guard) atRisk() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.risks = append(g.risks, time.Now())
}

func (g *Guard) lose(reason messages.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = append(g.lost, Loss{time.Now(), reason})
}

// notifications are those that the guard has received so far.
func (g *Guard) notifications() (risks []time.Time, lost []Loss) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.risks, g.lost
}

// GuardByContext holds a lock and listens to the Context of its Hold.
func GuardByContext(t testing.TB, s *Site, k Key) *Guard {
	t.Helper()
	g := &Guard{Key: k, How: "by context", Latency: measureLatency(t)}
	hold := s.Acquire(t, k, lockkeeper.WithAtRisk(func(time.Duration) { g.atRisk() }))
	ctx := hold.Context()
	context.AfterFunc(ctx, func() {
		if why := lossOf(context.Cause(ctx)); why != 0 {
			g.lose(why)
		}
	})
	g.GiveUp = func(t testing.TB) { Release(t, hold) }
	g.valid = hold.Valid
	return g
}

// guardByMessage holds a lock as an actor.
func guardByMessage(t testing.TB, s *Site, k Key) *Guard {
	t.Helper()
	g, p := &Guard{Key: k, How: "by message", Latency: measureLatency(t)}, s.Probe(t)
	p.Notice = func(m any) bool {
		switch m := m.(type) {
		case *messages.LeaseAtRisk:
			g.atRisk()
		case *messages.LeaseLost:
			g.lose(m.Reason)
		default:
			return true
		}
		return false
	}
	granted := Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
	g.GiveUp = func(t testing.TB) {
		Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	}
	return g
}

// Guards returns one guard of each kind.
func Guards(t testing.TB, s *Site, server *redistest.Server) []*Guard {
	t.Helper()
	return []*Guard{GuardByContext(t, s, NewKey(t, server)), guardByMessage(t, s, NewKey(t, server))}
}

// AwaitLoss waits for the loss of which the guard is notified.
func (g *Guard) AwaitLoss(t testing.TB) Loss {
	t.Helper()
	redistest.Eventually(t, "the guard to be notified "+g.How, func() bool { _, lost := g.notifications(); return len(lost) > 0 })
	_, lost := g.notifications()
	return lost[0]
}

// ExpectLossInTime checks that the guard was notified of its loss before the key expired, and warned before that.
func (g *Guard) ExpectLossInTime(t testing.TB, end time.Time, warned bool, reason messages.Reason) Loss {
	t.Helper()
	lost := g.AwaitLoss(t)
	if late := lost.At.Sub(end); late > g.Latency.Tolerance() {
		t.Errorf("%s: notified %v too late", g.How, late)
	}
	if lost.Reason != reason {
		t.Errorf("%s: lost because of %v, want %v", g.How, lost.Reason, reason)
	}
	if risks, _ := g.notifications(); warned && (len(risks) == 0 || risks[0].After(lost.At)) {
		t.Errorf("%s: warned at %v, lost at %v", g.How, risks, lost.At)
	}
	return lost
}

// Successor acquires the guard's lock at another site, and checks that the guard's hold is not valid by then.
func (g *Guard) Successor(t testing.TB, elsewhere *Site) <-chan Grant {
	granted, checked := elsewhere.AcquireSoon(t, g.Key), make(chan Grant, 1)
	go func() {
		next := <-granted
		if g.valid != nil && g.valid() {
			t.Errorf("%s: the hold is valid, and another process has the lock", g.How)
		}
		checked <- next
	}()
	return checked
}

// latencyMeter measures how late timers fire on this machine.
type latencyMeter struct{ worst atomic.Int64 }

func measureLatency(t testing.TB) *latencyMeter {
	p := &latencyMeter{}
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		const beat = 5 * time.Millisecond
		for began := time.Now(); ctx.Err() == nil; began = time.Now() {
			select {
			case <-ctx.Done():
			case <-time.After(beat):
				p.worst.Store(max(p.worst.Load(), int64(time.Since(began)-beat)))
			}
		}
	})
	t.Cleanup(func() { cancel(); beating.Wait() })
	return p
}

// Tolerance is how late an event may be that needs a timer and a few goroutines. It is
// more than the margin of a short lease.
func (p *latencyMeter) Tolerance() time.Duration {
	return 100*time.Millisecond + 3*time.Duration(p.worst.Load())
}
