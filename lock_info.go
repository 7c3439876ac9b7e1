package lockkeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// LockInfo is a lock or a synchronizer that a System holds or waits for, as far as the System knows it
// without asking Redis. Kind says which it is.
type LockInfo struct {
	// Name is the name of the lock, without the key prefix; for a MultiLock, the names of its
	// members.
	Name string
	// Kind may also be KIND_EXPIRABLE_SEMAPHORE, KIND_SEMAPHORE or KIND_LATCH. Semaphores and latches have no
	// holder: only Waiters and Waiting are set.
	Kind messages.Kind
	// Held reports whether this System holds the lock.
	Held bool
	// Shared reports whether this System holds the lock for reading.
	Shared bool
	// Holders is the number of holders in this System, which share one lease; each holder of permits has its own lease.
	Holders int
	// Count is the hold count of the first holder. For an expirable semaphore it is the number of permits that this
	// System holds.
	Count int
	// Token is the fencing token of the first holder; 0 if it has none, and for a MultiLock.
	Token int64
	// Age is the time for which the first holder has held the lock.
	Age time.Duration
	// Note is the text given to WithNote by the first holder that has a note.
	Note string
	// Lease is the time for which the lease is still valid if it is not renewed; of several permits, the shortest time.
	Lease time.Duration
	// Waiters is the number of requests that wait in this System.
	Waiters int
	// Waiting is the time for which the first request that waits in this System has waited.
	Waiting time.Duration
}

// Locks lists, sorted by name, the locks and the permits of expirable semaphores that this System holds or
// waits for, and the semaphores and latches that it waits for. It asks the lock actors and not Redis. A
// MultiLock is listed as a whole, a RedLock only by the first of its Systems. The error is ErrInvalid for a
// nil System, ErrClosed, or the cause of ctx.
func (s *System) Locks(ctx context.Context) ([]LockInfo, error) {
	const text = "lockkeeper: locks: %w"
	switch {
	case s.inner() == nil:
		return nil, fmt.Errorf(text+": the System is nil", ErrInvalid)
	case ctx == nil:
		return nil, fmt.Errorf(text+": %w", ErrInvalid, errNoContext)
	case s.runtime.Closed():
		return nil, fmt.Errorf(text, ErrClosed)
	}
	states, complete := s.runtime.Locks(ctx)
	if !complete {
		return nil, fmt.Errorf(text, context.Cause(ctx))
	}
	all := make([]LockInfo, len(states))
	for i, m := range states {
		all[i] = LockInfo{
			Name: m.Lock.Name, Kind: m.Lock.Kind, Held: m.HeldHere, Shared: m.HeldHere && m.Mode == messages.Mode_MODE_SHARED,
			Holders: int(m.Holders), Count: int(m.HoldCount), Token: m.Token, Age: m.HeldFor.AsDuration(), Note: m.Note, Lease: m.Ttl.AsDuration(),
			Waiters: int(m.Waiters), Waiting: m.WaitingFor.AsDuration(),
		}
	}
	slices.SortFunc(all, func(a, b LockInfo) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return all, nil
}
