package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Orders to an operator: See a lock, and say Seen; then Force it, and say Forced when the
// call has returned.
const (
	See    = "see"
	Seen   = "seen"
	Force  = "force"
	Forced = "forced"
)

// forcible is a lock of a kind.
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

// see looks who holds a lock, which has the name of its kind. Another lock of the kind is taken and freed before, so
// that Redis has the script: the command that is late must be the last.
func (c *client) see(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	other := c.forcible(Kind(name), "unused-"+name)
	_, _ = other.Acquire(ctx) // without the script, the late command has no effect
	_, _ = other.ForceRelease(ctx)
	status, _ := c.forcible(Kind(name), name).Inspect(ctx) // no owner was seen if it fails
	c.seen = status.Owners
	fmt.Fprintln(c.say, Seen)
}

// force frees the lock that it has seen.
func (c *client) force(name string) {
	since := history.Now()
	if len(c.seen) > 0 {
		_, _ = c.forcible(Kind(name), name).ForceRelease(context.Background(), c.seen...) // it may arrive all the same
	}
	w := worker{c: c, r: c.round}
	w.called("force "+name, 0, since, c.plan.CallTimeout+250*time.Millisecond)
	fmt.Fprintln(c.say, Forced)
}
