package traffic

import (
	"context"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// LeasedPermits is how many permits that expire there are at first.
const LeasedPermits = 3

// holding is a hold of a lock, or a permit that expires.
type holding interface {
	Valid() bool
	Err() error
	Context() context.Context
	Release(ctx context.Context) error
}

// leased are the permits that expire.
func leased(s *lockkeeper.System) choice {
	return choice{permits: s.ExpirableSemaphore(string(Leased)), parts: []history.Part{{Lock: string(Leased), Kind: string(Leased), Takes: 1, Of: LeasedPermits}}}
}

// changePermits sets the permits that expire, if there is such a style, and changes their number again and again.
func (w *worker) changePermits() {
	if !slices.ContainsFunc(w.c.plan.Styles, func(s Style) bool { return s.Kind == Leased }) {
		return
	}
	permits, set := w.c.system.ExpirableSemaphore(string(Leased)), false
	for ; w.r.ctx.Err() == nil; w.pause(w.style.Think.Pick(w.random)) {
		if !set {
			_, err := permits.TrySetPermits(w.r.ctx, LeasedPermits)
			set = err == nil
			continue
		}
		part := history.Part{Lock: string(Leased), Kind: string(Leased)}
		how := permits.SetPermits
		if part.Does, part.Takes = history.Resize, LeasedPermits-1+w.random.IntN(3); w.random.IntN(2) == 0 {
			part.Does, part.Takes, how = history.Add, 1-2*w.random.IntN(2), permits.AddPermits
		}
		_ = w.change(part, 2*w.c.plan.CallTimeout+time.Second, func() error { return how(context.Background(), part.Takes) })
	}
}

// change makes a request after which nobody has anything, within a bound, and notes it.
func (w *worker) change(part history.Part, bound time.Duration, do func() error) error {
	id := w.asking([]history.Part{part}, 0, false, bound)
	err := do()
	w.granted(id, err)
	return err
}

// keepPermit acquires a permit that was asked for, holds it for a while, and gives it back.
func (w *worker) keepPermit(ctx context.Context, id int, what choice, options []lockkeeper.Option) {
	permit, err := what.permits.Acquire(ctx, options...)
	w.granted(id, err)
	if err != nil {
		return
	}
	if w.random.IntN(4) == 0 {
		permit.ID() // it is not handed over then
	}
	h := &held{w: w, id: id, lock: what, hold: permit}
	h.look()
	h.keep(w.keepFor(), 1)
	_ = h.release() // noted in the history
}

// granted notes how a request about a synchronizer ended.
func (w *worker) granted(id int, err error) {
	e := history.Event{Stage: history.Granted, At: history.Now(), ID: id, Count: 1}
	if err != nil {
		e.Stage, e.Count, e.Err = history.Refused, 0, reason(err)
	}
	w.r.out.Add(e)
}
