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

// see looks who holds a lock, which has the name of its kind. Another lock of the kind is freed, so that Redis has the
// script: the command that is late must be the last.
func (c *client) see(name string) {
	_, _ = c.forcible(Kind(name), "unused-"+name).ForceRelease(context.Background()) // it is free
	_, _ = c.forcible(Kind(name), name).Inspect(context.Background())                // who cannot see it forces it nevertheless
	fmt.Fprintln(c.say, Seen)
}

// force frees the lock that it has seen.
func (c *client) force(name string) {
	since := history.Now()
	_, _ = c.forcible(Kind(name), name).ForceRelease(context.Background()) // it may arrive all the same
	w := worker{c: c, r: c.round}
	w.called("force "+name, 0, since, c.plan.CallTimeout+250*time.Millisecond)
	fmt.Fprintln(c.say, Forced)
}
