package traffic

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// jobPeriod is the minimum time of the holds of jobs. It is longer than a job and the bound of its request together.
const jobPeriod = time.Second

// JobStyle is the style of workers whose jobs are done once in each period, although several processes try.
var JobStyle = Style{Kind: Job, Workers: 2, Hold: upTo(25), Think: upTo(60)}

// doJob tries to acquire the lock of a job, and does the job if it has got the lock.
func (w *worker) doJob() {
	locks := []*lockkeeper.Lock{w.c.system.Lock("job-a"), w.c.system.FencedLock("job-b"), w.c.system.FairLock("job-c")}
	i := w.random.IntN(len(locks))
	parts := []history.Part{{Lock: locks[i].Name(), Kind: string(Job)}}
	id := w.askingForAtLeast(parts, jobPeriod, w.c.plan.CallTimeout)
	hold, err := locks[i].Acquire(w.r.ctx, lockkeeper.WithWait(0), lockkeeper.WithAtLeast(jobPeriod))
	w.answered(id, hold, err)
	if err != nil {
		return
	}
	h := &held{w: w, id: id, lock: choice{lock: locks[i]}, hold: hold}
	h.look()
	h.keep(w.style.Hold.Pick(w.random), 1)
	_ = h.release() // recorded in the history
}
