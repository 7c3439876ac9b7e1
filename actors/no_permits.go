package actors

import (
	"sync/atomic"
	"time"
)

// noPermits tells the log that requests are refused since no number of permits is set. The zero value
// is ready.
type noPermits struct{ next atomic.Int64 }

// noPermitsEvery is how often it does, for all names together.
const noPermitsEvery = time.Minute

// refused is called for a refusal, and logs the first of each period.
func (n *noPermits) refused(rt *Runtime, name, detail string) {
	now := rt.Now()
	next := n.next.Load()
	if int64(now) < next || !n.next.CompareAndSwap(next, int64(now+noPermitsEvery)) {
		return
	}
	rt.host.Warn("no number of permits is set", "semaphore", name, "detail", detail,
		"remedy", "set it with TrySetPermits; for permits that expire, WithPermits sets it again")
}
