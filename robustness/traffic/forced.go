package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Commands for an operator: See inspects a lock, and answers Seen; then Force releases it by force,
// and answers Forced when the call has returned.
const (
	See    = "see"
	Seen   = "seen"
	Force  = "force"
	Forced = "forced"
)

// forcible returns a lock of a kind.
func (c *client) forcible(kind Kind, name string) *lockkeeper.Lock {
	switch kind {
	case Fenced:
		return c.system.FencedLock(name)
	case Fair:
		return c.system.FairLock(name)
	case ReadWrite:
		return c.system.ReadWriteLock(name).Write()
	}
	return c.system.Lock(name)
}

// see inspects the owners of a lock, which has the name of its kind. Another lock of the kind is acquired and released
// before, so that Redis has the script: the delayed command must be the last.
func (c *client) see(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	other := c.forcible(Kind(name), "unused-"+name)
	_, _ = other.Acquire(ctx) // without the script, the late command has no effect
	_, _ = other.ForceRelease(ctx)
	status, _ := c.forcible(Kind(name), name).Inspect(ctx) // no owner was seen if it fails
	c.seen = status.Owners
	fmt.Fprintln(c.answers, Seen)
}

// force releases by force the lock that was inspected.
func (c *client) force(name string) {
	since := history.Now()
	if len(c.seen) > 0 {
		_, _ = c.forcible(Kind(name), name).ForceRelease(context.Background(), c.seen...) // it may arrive all the same
	}
	w := worker{c: c, r: c.round}
	w.called("force "+name, 0, since, c.plan.CallTimeout+250*time.Millisecond)
	fmt.Fprintln(c.answers, Forced)
}
