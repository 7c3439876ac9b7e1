package request

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Count contains the arguments of a Call about a semaphore or a latch. On a latch, OpAcquire waits until it is open,
// OpRelease counts down, and OpSet sets the count.
type Count struct {
	// N is the number of permits.
	N int64
	// TTL is the TTL of a semaphore that OpSet makes; 0 for none.
	TTL time.Duration
	// IfExists makes an OpRelease succeed although there is no semaphore.
	IfExists bool
	// ID is the id of a count-down; "" if it has none.
	ID string
}

// CountCall is a Call about a semaphore or a latch, with its Count.
type CountCall struct {
	Call
	Count
}

// The limits of a request about a latch. Lua's numbers are exact up to 2^53.
const (
	maxCount int64 = 1_000_000_000_000
	// maxID is in bytes.
	maxID = 512
)

// checkCount returns an error if a request about a semaphore or a latch is not valid here.
func (r *Rules) checkCount(call *Call) error {
	err := errors.Join(call.Count.check(call), r.CheckName(call.Name))
	if err != nil || !call.IsLatch() || !r.Sharded {
		return err
	}
	if full := r.KeyPrefix + call.Name; keyspace.Slot(full) != keyspace.Slot(keyspace.LatchChannel(full)) {
		return fmt.Errorf("the latch's name %q does not work in a Redis Cluster with sharded pub/sub: "+
			"Redisson puts it into braces for the channel, which is in another slot then; use no brace", call.Name)
	}
	return err
}

// IsLatch reports whether a call is about a latch.
func (call *Call) IsLatch() bool { return TraitsOf(call.Kind).Composition == LatchKey }

func (c *Count) check(call *Call) error {
	switch latch := call.IsLatch(); {
	case latch && call.Op == OpSet && (c.N < 1 || c.N > maxCount):
		return fmt.Errorf("the count is %d, and must be between 1 and %d", c.N, maxCount)
	case len(c.ID) > maxID:
		return fmt.Errorf("the id has %d bytes, and %d are allowed", len(c.ID), maxID)
	case (call.Op == OpAcquire || call.Op == OpRelease) && !latch && (c.N < 1 || c.N > machine.MaxPermits):
		return fmt.Errorf("%d permits: a request is for 1 to %d", c.N, machine.MaxPermits)
	case call.Op == OpSet && !latch && (c.N < 0 || c.N > machine.MaxPermits):
		return fmt.Errorf("%d permits: a semaphore has 0 to %d", c.N, machine.MaxPermits)
	case call.Op == OpAdd && (c.N < -machine.MaxPermits || c.N > machine.MaxPermits):
		return fmt.Errorf("%d more permits: at most %d can be added or taken away", c.N, machine.MaxPermits)
	case c.TTL != 0 && (c.TTL < MinLease || c.TTL > MaxLease):
		return fmt.Errorf("the TTL is %v, and must be between %v and %v", c.TTL, MinLease, MaxLease)
	case call.Wait < 0:
		return fmt.Errorf("the wait is %v, and must not be negative", call.Wait)
	}
	return nil
}

// Check returns an error if a call is not valid; after an error the call must not be used. Check ignores the name,
// which the guardian checks.
func (call *CountCall) Check() error { return call.Call.Count.check(&call.Call) }

// CountAnswer answers a CountCall.
type CountAnswer struct {
	// Done says whether something was set or given back.
	Done bool
	// N is the number of permits, or of the missing count-downs.
	N int64
	// Reason is why the call was refused, 0 if it was not.
	Reason machine.Reason
	Detail string
}

// CountAnswerOf returns an outcome as the answer to a CountCall.
func CountAnswerOf(o *Outcome) CountAnswer { return CountAnswer{o.Done, o.N, o.Reason, o.Detail} }
