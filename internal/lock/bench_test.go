package lock_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// bench applies events as the lock actor does: each to a copy, which then replaces the original.
type bench struct {
	cfg        *machine.Config
	now        *lock.Lock
	next       *lock.Lock
	terms, ids uint64
	commands   []uint64
	clock      machine.Instant
	answered   int
}

func newBench(kind *lock.Kind) *bench {
	cfg := &machine.Config{
		Watchdog: 30 * time.Second, Renewal: 10 * time.Second, HandOffLimit: time.Hour, ForcedYield: time.Hour,
		Poll: time.Second, CallTimeout: time.Second, QueueLimit: 100,
	}
	l := lock.New(cfg, kind)
	return &bench{cfg: cfg, now: &l, next: new(lock.Lock)}
}

func (b *bench) do(event func(*lock.Lock, machine.Instant)) {
	*b.next = *b.now
	if !b.next.HasNextTerm() {
		b.terms++
		b.next.SetNextTerm(b.terms)
	}
	event(b.next, b.clock)
	b.now, b.next = b.next, b.now
	b.commands = b.commands[:0]
	for {
		e, ok := b.now.Effects()
		switch {
		case !ok:
			return
		case e.Kind == machine.Send:
			b.commands = append(b.commands, e.Ref.(*lock.Command).Seq)
		case e.Kind == machine.Reply:
			b.answered++
		}
	}
}

func (b *bench) acquire() uint64 {
	b.ids++
	req := machine.Request{ID: b.ids, Ref: b}
	b.do(func(l *lock.Lock, now machine.Instant) { l.Acquire(now, req) })
	return b.ids
}

func (b *bench) release(hold uint64) {
	b.do(func(l *lock.Lock, now machine.Instant) { l.Release(now, hold, 0, machine.Exclusive, b) })
}

// reply answers all commands under way.
func (b *bench) reply() {
	for _, seq := range append([]uint64(nil), b.commands...) {
		b.do(func(l *lock.Lock, now machine.Instant) { l.Replied(now, seq, lock.Result{Outcome: lock.Done}) })
	}
}

// BenchmarkHandOff measures a local hand-off: a request that waits, and a release.
func BenchmarkHandOff(b *testing.B) {
	x := newBench(&lock.Kind{})
	hold := x.acquire()
	x.reply()
	b.ReportAllocs()
	for b.Loop() {
		waiter := x.acquire()
		x.release(hold)
		hold = waiter
	}
	if x.answered < 2*b.N {
		b.Fatalf("%d answers to %d requests and as many releases", x.answered, b.N)
	}
}

// BenchmarkUncontended measures an acquire and a release without waiters.
func BenchmarkUncontended(b *testing.B) {
	x := newBench(&lock.Kind{})
	b.ReportAllocs()
	for b.Loop() {
		hold := x.acquire()
		x.reply()
		x.release(hold)
		x.reply()
	}
	if x.answered != 2*b.N {
		b.Fatalf("%d answers to %d requests and as many releases", x.answered, b.N)
	}
}
