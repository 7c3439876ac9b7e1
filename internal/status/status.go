// Package status describes a lock as a process knows it without asking Redis.
package status

import (
	"cmp"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Lock is a lock, semaphore or latch as its actor knows it.
type Lock struct {
	Machine machine.Machine
	// Label names the lock; for a MultiLock it has the members.
	Label string
	// Several says that the lock is made of several locks, and so has several fencing tokens.
	Several bool
	Now     machine.Instant
}

// Listed returns the state of a lock for a list; nil if the lock is neither held here nor waited for.
func (l Lock) Listed() *messages.Status {
	here := l.Machine.Snapshot()
	if !here.HeldHere && here.Waiters == 0 {
		return nil
	}
	holders, _ := l.Machine.Outstanding()
	ref := l.Machine.FirstWaiter()
	if len(holders) > 0 {
		ref = holders[0].Ref
	}
	status := &messages.Status{
		Lock: request.AsRequested(ref, l.Label), Locked: here.HeldHere, HoldCount: int64(here.Count), Holders: int64(len(holders)),
	}
	if status.Mode = status.Lock.Mode; here.HeldHere {
		status.Ttl = request.Duration(max(here.Until-l.Now, 0))
	}
	for _, holder := range holders {
		status.Note = cmp.Or(status.Note, holder.Ref.(*request.Call).Note)
	}
	l.add(status, &here, holders)
	return status
}

// AddTo adds the knowledge of this process to the state of a lock in Redis.
func (l Lock) AddTo(status *messages.Status) {
	here := l.Machine.Snapshot()
	holders, _ := l.Machine.Outstanding()
	l.add(status, &here, holders)
}

// add adds whether the lock is held here and how long, the fencing token of its first holder, how many requests wait
// here, and how long the first of them waits.
func (l Lock) add(status *messages.Status, here *machine.Snapshot, holders []machine.Holder) {
	status.HeldHere, status.Waiters = here.HeldHere, int64(here.Waiters)
	if len(here.Tokens) > 0 && !l.Several {
		status.Token = here.Tokens[0]
	}
	age := func(ref any) machine.Instant { return max(l.Now-ref.(*request.Call).Since, 0) }
	if len(holders) > 0 {
		status.HeldFor = request.Duration(age(holders[0].Ref))
	}
	if waiter := l.Machine.FirstWaiter(); waiter != nil {
		status.WaitingFor = request.Duration(age(waiter))
	}
}
