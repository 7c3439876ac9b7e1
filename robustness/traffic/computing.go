package traffic

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// processors is GOMAXPROCS of a process with busy goroutines.
const processors = 2

// ahead is the time from the start of a round until its goroutines get busy, so that leases are held by then.
const ahead = time.Second

// compute keeps some goroutines busy until the round ends.
func (r *round) compute(goroutines int) {
	for range goroutines {
		r.workers.Go(func() {
			time.Sleep(ahead)
			for n := uint64(1); r.ctx.Err() == nil; {
				for range 1 << 16 {
					n = n*6364136223846793005 + 1442695040888963407
				}
			}
		})
	}
}

// computing prepares a process with busy goroutines, and connects the library that it is compared with.
func (c *client) computing() (err error) {
	runtime.GOMAXPROCS(processors)
	at, err := url.Parse(c.spec.Redis)
	if err != nil {
		return err
	}
	c.peer, err = rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{at.Host}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: c.plan.Watchdog, TryNextAfter: c.plan.Watchdog,
	})
	return err
}

// holdWhileComputing holds a lock of its own while the process computes. Only a late renewal can end the hold.
func (w *worker) holdWhileComputing() {
	name := fmt.Sprintf("%s-%d-%d", w.style.Kind, w.c.spec.Proc, w.number)
	part := history.Part{Lock: name, Kind: string(Plain)}
	if w.style.Kind == Peer {
		w.heldByPeer(part)
		return
	}
	what := choice{lock: w.c.system.Lock(name), parts: []history.Part{part}}
	id := w.asking(what.parts, 0, false, 0)
	hold, err := what.lock.Acquire(w.r.ctx)
	w.answered(id, hold, err)
	if err != nil {
		return
	}
	h := &held{w: w, id: id, lock: what, hold: hold}
	h.look()
	w.pauseWithin(hold.Context())
	_ = h.release() // noted in the history
}

// heldByPeer does the same with rueidislock.
func (w *worker) heldByPeer(part history.Part) {
	part.Kind = string(Peer)
	id := w.asking([]history.Part{part}, 0, false, 0)
	ctx, release, err := w.c.peer.WithContext(w.r.ctx, part.Lock)
	w.granted(id, err)
	if err != nil {
		return
	}
	w.pauseWithin(ctx)
	note := func(e history.Event) {
		e.ID, e.At = id, history.Now()
		w.r.out.Add(e)
	}
	if ctx.Err() != nil && w.r.ctx.Err() == nil {
		note(history.Event{Stage: history.Notified, Err: string(Peer)})
	}
	note(history.Event{Stage: history.Releasing})
	release()
	note(history.Event{Stage: history.Released})
}

// pauseWithin waits for the hold time of the style, unless the context or the round ends.
func (w *worker) pauseWithin(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.r.ctx.Done():
	case <-time.After(w.style.Hold.Pick(w.random)):
	}
}
