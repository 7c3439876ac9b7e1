package traffic

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	freshWorkers = 16
	// freshLease is the lease of new locks, and freshAge how long each is in use: it is held once.
	freshLease = 6 * time.Second
	freshAge   = freshLease + time.Second
)

// FreshStyle is the style of workers that acquire ever new locks.
var FreshStyle = Style{Kind: Fresh, Workers: freshWorkers, Fixed: freshLease}

// takeFresh acquires a lock that was never held before, together with the same worker of the other processes. On a
// replica that lags the lock is free. It is held long enough for the replica to take over, without a renewal that would
// detect the loss.
func (w *worker) takeFresh() {
	ahead := time.Duration(w.number) * freshAge / freshWorkers
	n := (history.Now() + ahead) / freshAge
	part := history.Part{Lock: fmt.Sprintf("%s-%d-%d", Fresh, w.number, n), Kind: "plain"}
	ends := (n+1)*freshAge - ahead
	wait := max(ends-history.Now()-2*time.Second, 0)
	id := w.asking([]history.Part{part}, 0, false, max(wait, w.c.plan.CallTimeout))
	l := w.c.system.Lock(part.Lock)
	hold, err := l.Acquire(w.r.ctx, lockkeeper.WithWait(wait), lockkeeper.WithLease(freshLease), lockkeeper.WithoutReentry())
	w.answered(id, hold, err)
	if err == nil {
		h := &held{w: w, id: id, lock: choice{lock: l}, hold: hold}
		h.keep(timeout, 1)
		_ = h.release() // recorded in the history
	}
	w.pause(ends - history.Now())
}
