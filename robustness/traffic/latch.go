package traffic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	// latchAge is how long a latch is in use. Workers close it during closing, and then count it down
	// or wait.
	latchAge, closing = 1500 * time.Millisecond, 150 * time.Millisecond
	// latchCount is the count of a latch, and countDowns the most count-downs of one worker.
	latchCount, countDowns = 4, 2
	// latchIDs is the number of ids, which half of the count-downs have.
	latchIDs = 3
)

// atLatch closes the current latch, counts it down, or waits for it.
func (w *worker) atLatch() {
	n, bound := history.Now()/latchAge, w.c.plan.CallTimeout+250*time.Millisecond
	part := history.Part{Lock: fmt.Sprintf("%s-%d", Latch, n), Kind: string(Latch)}
	l := w.c.system.Latch(part.Lock)
	if w.latch != n {
		w.latch, w.counted = n, 0
	}
	// The workers of each third process only wait: only a message or the next poll wakes them.
	asleep := (int(n)+w.c.spec.Proc)%3 == 0
	switch {
	case history.Now()%latchAge < closing:
		part.Action, part.Permits = history.Close, latchCount
		_ = w.change(part, bound, func() error {
			set, err := l.TrySetCount(context.Background(), latchCount)
			if err == nil && !set {
				err = errors.New(history.AlreadyClosed)
			}
			return err
		})
	case !asleep && w.counted < countDowns && w.random.IntN(3) == 0:
		w.counted++
		part.Action, part.Permits, part.CountDownID = history.Down, 1, w.random.IntN(2)*(1+w.random.IntN(latchIDs))
		_ = w.change(part, bound, func() error {
			if part.CountDownID == 0 {
				return l.CountDown(context.Background())
			}
			return l.CountDownOnce(context.Background(), strconv.Itoa(part.CountDownID))
		})
	default:
		w.waitFor(l, part, asleep)
	}
}

// waitFor waits for a latch, or only checks whether it is open unless the wait is to be long.
func (w *worker) waitFor(l *lockkeeper.Latch, part history.Part, long bool) {
	ctx, cancel := context.WithCancel(w.r.ctx)
	defer cancel()
	bound := w.style.GiveUpAfter.Pick(w.random)
	wait := bound
	switch how := w.random.IntN(6); {
	case long:
		wait, bound = timeout/4, timeout/4
	case how == 0:
		wait, bound = 0, w.c.plan.CallTimeout
	case how == 1:
	case how == 2:
		giveUp := time.AfterFunc(bound, cancel)
		defer giveUp.Stop()
		wait = latchAge
	default:
		wait, bound = latchAge, latchAge
	}
	id := w.asking([]history.Part{part}, 0, false, bound)
	w.granted(id, l.Wait(ctx, lockkeeper.WithWait(wait)))
}
