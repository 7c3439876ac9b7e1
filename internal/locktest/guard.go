package locktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Guard is a holder that notes when it is told what.
type Guard struct {
	Key
	How    string
	GiveUp func(t testing.TB)
	valid  func() bool // nil for an actor, who cannot ask
	Pulse  *pulse

	Mu    sync.Mutex
	Risks []time.Time
	Lost  []Loss
}

type Loss struct {
	At     time.Time
	Reason messages.Reason
}

func (g *Guard) risk() {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.Risks = append(g.Risks, time.Now())
}

func (g *Guard) lose(reason messages.Reason) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.Lost = append(g.Lost, Loss{time.Now(), reason})
}

// GuardByContext holds a lock and listens to the Context of its Hold.
func GuardByContext(t testing.TB, s *Site, k Key) *Guard {
	t.Helper()
	g := &Guard{Key: k, How: "by context", Pulse: TakePulse(t)}
	hold := s.Acquire(t, k, lockkeeper.WithAtRisk(func(time.Duration) { g.risk() }))
	ctx := hold.Context()
	context.AfterFunc(ctx, func() {
		var why *lockkeeper.Error
		if cause := context.Cause(ctx); errors.Is(cause, lockkeeper.ErrLost) && errors.As(cause, &why) {
			g.lose(why.Reason)
		}
	})
	g.GiveUp = func(t testing.TB) { Release(t, hold) }
	g.valid = hold.Valid
	return g
}

// guardByMessage is an actor that holds a lock.
func guardByMessage(t testing.TB, s *Site, k Key) *Guard {
	t.Helper()
	g, p := &Guard{Key: k, How: "by message", Pulse: TakePulse(t)}, s.Probe(t)
	p.Notice = func(m any) bool {
		switch m := m.(type) {
		case *messages.LeaseAtRisk:
			g.risk()
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

// Guards are one guard of either kind.
func Guards(t testing.TB, s *Site, server *redistest.Server) []*Guard {
	t.Helper()
	return []*Guard{GuardByContext(t, s, NewKey(t, server)), guardByMessage(t, s, NewKey(t, server))}
}

// AwaitLoss is the one loss that the guard is told of.
func (g *Guard) AwaitLoss(t testing.TB) Loss {
	t.Helper()
	redistest.Eventually(t, "the guard to be told "+g.How, func() bool {
		g.Mu.Lock()
		defer g.Mu.Unlock()
		return len(g.Lost) > 0
	})
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return g.Lost[0]
}

// pulse measures how late this machine is with everything, busy as it may be.
type pulse struct{ worst atomic.Int64 }

func TakePulse(t testing.TB) *pulse {
	p := &pulse{}
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		const beat = 5 * time.Millisecond
		for {
			began := time.Now()
			select {
			case <-ctx.Done():
				return
			case <-time.After(beat):
				p.worst.Store(max(p.worst.Load(), int64(time.Since(began)-beat)))
			}
		}
	})
	t.Cleanup(func() { cancel(); beating.Wait() })
	return p
}

// Noise is how late something may be that takes a timer and a few goroutines. It is
// more than the margin of a short lease.
func (p *pulse) Noise() time.Duration { return 100*time.Millisecond + 3*time.Duration(p.worst.Load()) }

// Successor gets the guard's lock elsewhere. At that moment the guard must know.
func (g *Guard) Successor(t testing.TB, elsewhere *Site) <-chan Grant {
	granted, checked := elsewhere.AcquireSoon(t, g.Key), make(chan Grant, 1)
	go func() {
		next := <-granted
		if g.valid != nil && g.valid() {
			t.Errorf("%s: the hold is valid, and somebody else has the lock", g.How)
		}
		checked <- next
	}()
	return checked
}

// LostInTime checks that the guard was told of its loss before the key's end, and warned before that.
func (g *Guard) LostInTime(t testing.TB, end time.Time, warned bool, reason messages.Reason) Loss {
	t.Helper()
	lost := g.AwaitLoss(t)
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if late := lost.At.Sub(end); late > g.Pulse.Noise() {
		t.Errorf("%s: told %v too late", g.How, late)
	}
	if lost.Reason != reason {
		t.Errorf("%s: lost because of %v, want %v", g.How, lost.Reason, reason)
	}
	if warned && (len(g.Risks) == 0 || g.Risks[0].After(lost.At)) {
		t.Errorf("%s: warned at %v, lost at %v", g.How, g.Risks, lost.At)
	}
	return lost
}

// Unharmed checks that the guard was told of no loss and still holds its lock, and ends it.
func (g *Guard) Unharmed(t testing.TB) {
	t.Helper()
	if !g.Exists(t) {
		t.Errorf("%s: the key is gone", g.How)
	}
	g.GiveUp(t)
	g.AwaitFree(t)
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if len(g.Lost) > 0 {
		t.Errorf("%s: told of a loss that was none: %v", g.How, g.Lost)
	}
}
