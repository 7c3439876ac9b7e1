package kinds

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// locksOnly is the part of machine.Machine that is for locks only. The machines of semaphores and latches embed it. Its
// methods ignore the event: such a request is refused before it comes here, and other events are no more than a hint.
type locksOnly struct{}

func (locksOnly) ForceRelease(machine.Instant, machine.Mode, machine.Owners, any)   {}
func (locksOnly) Ensure(machine.Instant, uint64, time.Duration, any)                {}
func (locksOnly) Extend(machine.Instant, uint64, machine.Owner, time.Duration, any) {}
func (locksOnly) Transferred(machine.Instant, machine.Transfer)                     {}
func (locksOnly) Suspect(machine.Instant)                                           {}
func (locksOnly) Term() uint64                                                      { return 0 }

// LeaseUntil is 0: each permit has a lease of its own, or none.
func (locksOnly) LeaseUntil() machine.Instant { return 0 }
