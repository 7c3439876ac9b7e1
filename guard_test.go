package lockkeeper_test

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

// guard is a holder that notes when it is told what.
type guard struct {
	key
	how    string
	giveUp func(t testing.TB)
	valid  func() bool // nil for an actor, who cannot ask
	pulse  *pulse

	mu    sync.Mutex
	risks []time.Time
	lost  []loss
}

type loss struct {
	at     time.Time
	reason messages.Reason
}

func (g *guard) risk() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.risks = append(g.risks, time.Now())
}

func (g *guard) lose(reason messages.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = append(g.lost, loss{time.Now(), reason})
}

// guardByContext holds a lock and listens to the Context of its Hold.
func guardByContext(t testing.TB, s *site, k key) *guard {
	t.Helper()
	g := &guard{key: k, how: "by context", pulse: takePulse(t)}
	hold := s.acquire(t, k, lockkeeper.WithAtRisk(func(time.Duration) { g.risk() }))
	ctx := hold.Context()
	context.AfterFunc(ctx, func() {
		var why *lockkeeper.Error
		if cause := context.Cause(ctx); errors.Is(cause, lockkeeper.ErrLost) && errors.As(cause, &why) {
			g.lose(why.Reason)
		}
	})
	g.giveUp = func(t testing.TB) { release(t, hold) }
	g.valid = hold.Valid
	return g
}

// guardByMessage is an actor that holds a lock.
func guardByMessage(t testing.TB, s *site, k key) *guard {
	t.Helper()
	g, p := &guard{key: k, how: "by message", pulse: takePulse(t)}, s.probe(t)
	p.notice = func(m any) bool {
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
	granted := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})
	g.giveUp = func(t testing.TB) {
		ask[*messages.Released](t, p, &messages.Release{Lock: k.message(), HoldId: granted.HoldId})
	}
	return g
}

// guards are one guard of either kind.
func guards(t testing.TB, s *site, server *redistest.Server) []*guard {
	t.Helper()
	return []*guard{guardByContext(t, s, newKey(t, server)), guardByMessage(t, s, newKey(t, server))}
}

// awaitLoss is the one loss that the guard is told of.
func (g *guard) awaitLoss(t testing.TB) loss {
	t.Helper()
	redistest.Eventually(t, "the guard to be told "+g.how, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.lost) > 0
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost[0]
}

// pulse measures how late this machine is with everything, busy as it may be.
type pulse struct{ worst atomic.Int64 }

func takePulse(t testing.TB) *pulse {
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

// noise is how late something may be that takes a timer and a few goroutines. It is
// more than the margin of a short lease.
func (p *pulse) noise() time.Duration { return 100*time.Millisecond + 3*time.Duration(p.worst.Load()) }

// successor gets the guard's lock elsewhere. At that moment the guard must know.
func (g *guard) successor(t testing.TB, elsewhere *site) <-chan grant {
	granted, checked := elsewhere.acquireSoon(t, g.key), make(chan grant, 1)
	go func() {
		next := <-granted
		if g.valid != nil && g.valid() {
			t.Errorf("%s: the hold is valid, and somebody else has the lock", g.how)
		}
		checked <- next
	}()
	return checked
}

// lostInTime checks that the guard was told of its loss before the key's end, and warned before that.
func (g *guard) lostInTime(t testing.TB, end time.Time, warned bool, reason messages.Reason) loss {
	t.Helper()
	lost := g.awaitLoss(t)
	g.mu.Lock()
	defer g.mu.Unlock()
	if late := lost.at.Sub(end); late > g.pulse.noise() {
		t.Errorf("%s: told %v too late", g.how, late)
	}
	if lost.reason != reason {
		t.Errorf("%s: lost because of %v, want %v", g.how, lost.reason, reason)
	}
	if warned && (len(g.risks) == 0 || g.risks[0].After(lost.at)) {
		t.Errorf("%s: warned at %v, lost at %v", g.how, g.risks, lost.at)
	}
	return lost
}

// unharmed checks that the guard was told of no loss and still holds its lock, and ends it.
func (g *guard) unharmed(t testing.TB) {
	t.Helper()
	if !g.exists(t) {
		t.Errorf("%s: the key is gone", g.how)
	}
	g.giveUp(t)
	g.awaitFree(t)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lost) > 0 {
		t.Errorf("%s: told of a loss that was none: %v", g.how, g.lost)
	}
}
