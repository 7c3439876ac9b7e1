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
	// latchAge is how long a latch is in use. At first workers close it, and then they count it down
	// or wait.
	latchAge, closing = 1500 * time.Millisecond, 150 * time.Millisecond
	// latchCount is the count of a latch, and countDowns how often a worker counts it down at most.
	latchCount, countDowns = 4, 2
	// latchIDs is how many ids there are, for half of the count-downs.
	latchIDs = 3
)

// atLatch closes the latch of the moment, counts it down, or waits for it.
func (w *worker) atLatch() {
	n, bound := history.Now()/latchAge, w.c.plan.CallTimeout+250*time.Millisecond
	part := history.Part{Lock: fmt.Sprintf("%s-%d", Latch, n), Kind: string(Latch)}
	l := w.c.system.Latch(part.Lock)
	if w.latch != n {
		w.latch, w.counted = n, 0
	}
	// The workers of each third process only wait: nothing wakes them but a message, and the next poll.
	asleep := (int(n)+w.c.spec.Proc)%3 == 0
	switch {
	case history.Now()%latchAge < closing:
		part.Does, part.Takes = history.Close, latchCount
		_ = w.change(part, bound, func() error {
			set, err := l.TrySetCount(context.Background(), latchCount)
			if err == nil && !set {
				err = errors.New(history.Occupied)
			}
			return err
		})
	case !asleep && w.counted < countDowns && w.random.IntN(3) == 0:
		w.counted++
		part.Does, part.Takes, part.By = history.Down, 1, w.random.IntN(2)*(1+w.random.IntN(latchIDs))
		_ = w.change(part, bound, func() error {
			if part.By == 0 {
				return l.CountDown(context.Background())
			}
			return l.CountDownOnce(context.Background(), strconv.Itoa(part.By))
		})
	default:
		w.waitFor(l, part, asleep)
	}
}

// waitFor waits for a latch, or looks whether it is open unless the wait is to be long.
func (w *worker) waitFor(l *lockkeeper.Latch, part history.Part, long bool) {
	ctx, cancel := context.WithCancel(w.r.ctx)
	defer cancel()
	bound := w.style.GiveUp.Pick(w.random)
	wait := bound
	switch how := w.random.IntN(6); {
	case long:
		wait, bound = patience/4, patience/4
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
