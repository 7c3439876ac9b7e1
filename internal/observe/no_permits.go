package observe

import (
	"sync/atomic"
	"time"
)

// noPermits logs that requests are refused since no number of permits is set. The zero value is ready.
type noPermits struct{ next atomic.Int64 }

// noPermitsEvery is the interval of these lines, for all names together.
const noPermitsEvery = time.Minute

// refused is called for each refusal, and logs the first refusal of an interval.
func (n *noPermits) refused(o *Observer, name, detail string) {
	now := o.cfg.Now()
	next := n.next.Load()
	if int64(now) < next || !n.next.CompareAndSwap(next, int64(now+noPermitsEvery)) {
		return
	}
	o.host.Warn("no number of permits is set", "semaphore", name, "detail", detail,
		"remedy", "set it with TrySetPermits; for an expirable semaphore, WithTotal sets it again")
}
