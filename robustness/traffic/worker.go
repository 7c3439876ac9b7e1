package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// timeout is for events that must happen sooner or later.
const timeout = 20 * time.Second

// worker acquires one lock after another.
type worker struct {
	c      *client
	r      *round
	number int
	style  Style
	random *rand.Rand
	// counted is how often the worker has counted down the latch of that number.
	latch   time.Duration
	counted int
}

func (w *worker) run() {
	for w.r.ctx.Err() == nil {
		switch w.style.Kind {
		case Actor:
			w.withChildActor(byMessage(string(Actor), messages.Kind_KIND_PLAIN))
		case APIs:
			w.throughAnyAPI()
		case Spread:
			w.once(w.onSeveral())
		case Expirable:
			w.once(expirable(w.c.system, w.random))
		case Semaphore:
			w.useSemaphore()
		case Latch:
			w.atLatch()
		case Computing, Peer:
			w.holdWhileComputing()
		case Crowd:
			w.crowd()
		case Foreign:
			w.atForeign()
		case Edge:
			w.atEdge()
		case GivingUp:
			w.giveUp()
		case Read:
			w.read()
		case Fresh:
			w.takeFresh()
		case Job:
			w.doJob()
		default:
			w.once(choose(w.c.system, w.style.Kind, w.random))
		}
		w.pause(w.style.Think.Pick(w.random))
	}
}

// pause waits, unless the round ends.
func (w *worker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.r.ctx.Done():
	}
}

// asking records a request before it is made. bound is how long it may take, 0 for no limit.
func (w *worker) asking(parts []history.Part, root int, unlimited bool, bound time.Duration) int {
	id := int(w.c.ids.Add(1))
	if root == 0 {
		root = id
	}
	w.r.out.Add(history.Event{
		Stage: history.Asked, At: history.Now(), ID: id, Worker: w.number, Root: root, Parts: parts, Unlimited: unlimited, Bound: bound,
	})
	return id
}

// askingForAtLeast is asking for a hold with a minimum time.
func (w *worker) askingForAtLeast(parts []history.Part, atLeast, bound time.Duration) int {
	id := int(w.c.ids.Add(1))
	w.r.out.Add(history.Event{
		Stage: history.Asked, At: history.Now(), ID: id, Worker: w.number, Root: id, Parts: parts, AtLeast: atLeast, Bound: bound,
	})
	return id
}

// answered records the result of a request.
func (w *worker) answered(id int, hold *lockkeeper.Hold, err error) {
	e := history.Event{Stage: history.Granted, At: history.Now(), ID: id}
	switch {
	case err != nil:
		e.Stage, e.Err = history.Refused, reason(err)
	case len(hold.MemberTokens()) > 0:
		e.Count, e.Tokens = hold.Count(), hold.MemberTokens()
	default:
		e.Count, e.Tokens = hold.Count(), []int64{hold.Token()}
	}
	w.r.out.Add(e)
}

// called records a call that began at since, and how long it may take.
func (w *worker) called(name string, id int, since, bound time.Duration) {
	w.r.out.Add(history.Event{Stage: history.Called, ID: id, Call: name, Since: since, At: history.Now(), Bound: bound})
}

// extended records a call about the lease of a hold, which began at since.
func (w *worker) extended(id int, since, lease time.Duration, err error) {
	e := history.Event{Stage: history.Extended, ID: id, Since: since, At: history.Now(), Lease: lease}
	if err != nil {
		e.Err = reason(err)
	}
	w.r.out.Add(e)
	w.called("extend", id, since, w.c.plan.CallTimeout+250*time.Millisecond)
}

// reason names an error for the report.
func reason(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{lockkeeper.ErrLost, "lost"}, {lockkeeper.ErrHeld, "held"}, {lockkeeper.ErrTimeout, "timed out"},
		{lockkeeper.ErrUnavailable, "unavailable"}, {lockkeeper.ErrCrashed, "crashed"}, {lockkeeper.ErrClosed, "closed"},
		{lockkeeper.ErrNotHeld, "not held"}, {lockkeeper.ErrReentry, "re-entry"}, {lockkeeper.ErrNotReplicated, "not replicated"},
		{lockkeeper.ErrNoPermits, "no permits"}, {lockkeeper.ErrRejected, "rejected"}, {lockkeeper.ErrInvalid, "invalid"},
		{context.Canceled, "cancelled"}, {context.DeadlineExceeded, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return err.Error()
}

// once acquires a lock, holds it for a while, and releases it.
func (w *worker) once(what choice) {
	ctx, cancel := context.WithCancel(w.r.ctx)
	defer cancel()
	options := w.c.spec.Host.options(w.c.plan.Watchdog)
	unlimited, bound := w.random.Float64() >= w.style.GiveUpShare, time.Duration(0)
	if !unlimited {
		switch w.random.IntN(3) {
		case 0:
			options, bound = append(options, lockkeeper.WithWait(0)), w.c.plan.CallTimeout
		case 1:
			bound = Range{time.Millisecond, 100 * time.Millisecond}.Pick(w.random)
			options, ctx = append(options, lockkeeper.WithWait(bound)), context.Background()
		default:
			bound = w.style.GiveUpAfter.Pick(w.random)
			giveUp := time.AfterFunc(bound, cancel)
			defer giveUp.Stop()
		}
	}
	if w.style.Fixed > 0 {
		options = append(options, lockkeeper.WithLease(w.style.Fixed))
	}
	if what.reenter == nil {
		options = append(options, lockkeeper.WithoutReentry())
	}
	id := w.asking(what.parts, 0, unlimited, bound)
	if what.permits != nil {
		w.keepPermit(ctx, id, what, options)
		return
	}
	hold, err := what.lock.Acquire(ctx, options...)
	w.answered(id, hold, err)
	if err != nil {
		return
	}
	h := &held{w: w, id: id, lock: what, hold: hold}
	h.look()
	if what.reenter != nil && w.random.IntN(3) == 0 {
		h.reenter(hold, 1)
	}
	if h.over {
		return
	}
	h.keep(w.keepFor(), 1)
	_ = h.release() // recorded in the history
}

// longHold is the longest hold beyond the watchdog's TTL, since others wait.
const longHold = 3 * time.Second

// keepFor is how long to hold a lock: sometimes longer than the watchdog's TTL, if that is
// short.
func (w *worker) keepFor() time.Duration {
	if w.style.ToTheEnd {
		return timeout
	}
	if long := w.c.plan.Watchdog * 5 / 4; w.style.Fixed == 0 && long <= longHold && w.random.IntN(40) == 0 {
		return long
	}
	return w.style.Hold.Pick(w.random)
}
