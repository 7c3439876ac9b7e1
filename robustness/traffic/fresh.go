package traffic

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	freshWorkers = 16
	// freshLease is the lease of locks that are new, and freshAge is how long each is in use: it is held once.
	freshLease = 6 * time.Second
	freshAge   = freshLease + time.Second
)

// Freshly is the style of those who take them.
var Freshly = Style{Kind: Fresh, Workers: freshWorkers, Fixed: freshLease}

// freshly takes a lock that nobody had before, together with the same worker of the other processes. A replica
// that lags has never heard of it, and takes it for free. It is held for long enough for the replica to take
// over, and no renewal tells that it is lost.
func (w *worker) freshly() {
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
		h.keep(patience, 1)
		_ = h.release() // noted in the history
	}
	w.pause(ends - history.Now())
}
