package traffic

import (
	"context"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	// LeasedPermits is how many permits that expire there are.
	LeasedPermits = 3
	// setEvery is how often a process sets their number, in case Redis has come back empty.
	setEvery = 100 * time.Millisecond
)

// holding is a hold of a lock, or a permit that expires.
type holding interface {
	Valid() bool
	Err() error
	Context() context.Context
	Release(ctx context.Context) error
}

// leased are the permits that expire.
func leased(s *lockkeeper.System) choice {
	return choice{permits: s.Permits(string(Leased)), parts: []history.Part{{Lock: string(Leased), Kind: string(Leased), Takes: 1, Of: LeasedPermits}}}
}

// setPermits sees to it that there are permits that expire, if there is such a style.
func (c *client) setPermits(r *round) {
	if !slices.ContainsFunc(c.plan.Styles, func(s Style) bool { return s.Kind == Leased }) {
		return
	}
	for r.ctx.Err() == nil {
		// Whatever has failed is tried again.
		_, _ = c.system.Permits(string(Leased)).TrySetPermits(r.ctx, LeasedPermits)
		select {
		case <-time.After(setEvery):
		case <-r.ctx.Done():
		}
	}
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

// granted notes how a request for permits ended.
func (w *worker) granted(id int, err error) {
	e := history.Event{Stage: history.Granted, At: history.Now(), ID: id, Count: 1}
	if err != nil {
		e.Stage, e.Count, e.Err = history.Refused, 0, reason(err)
	}
	w.r.out.Add(e)
}
