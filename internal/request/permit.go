package request

import (
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Permit contains the arguments of a Call about permits: an OpAcquire of a kind with Permits needs it.
type Permit struct {
	// ID is the permit's id in Redis, the first of several ids; the grant sets it. It is an argument of OpReleaseID.
	ID machine.PermitID
	// Together is the number of permits that an OpAcquire wants, all or none; 0 is one.
	Together int
	// Until is the end of the permit's validity, which is kept up to date while the permit is held.
	Until atomic.Int64
	// Shown says that an id was shown, so that the permits are not handed off in this process.
	Shown atomic.Bool
	// How is an argument of OpSet.
	How messages.SetPermitsHow
	// Count is an argument of OpSet. For OpAcquire it is the number of permits to set if no number is set yet; 0
	// for none.
	Count int64
}

// ParsePermitID reads the id of a permit.
func ParsePermitID(text string) (id machine.PermitID, err error) {
	if n, bad := hex.Decode(id[:], []byte(text)[:min(len(text), 2*len(id))]); bad != nil || n != len(id) || len(text) != 2*n {
		return id, errors.New("the id of a permit has 32 hexadecimal digits")
	}
	return id, nil
}

// CheckPermits returns an error if the number of permits cannot be set to n in this way.
func CheckPermits(how messages.SetPermitsHow, n int64) error {
	least := int64(0)
	if how == messages.SetPermitsHow_SET_PERMITS_HOW_ADD {
		least = -machine.MaxPermits
	}
	if n < least || n > machine.MaxPermits {
		return fmt.Errorf("the number of permits is %d, and must be between %d and %d", n, least, machine.MaxPermits)
	}
	return nil
}

// ShowsPermit reports whether the id of the permit is shown to its holder.
func (call *Call) ShowsPermit() bool {
	return call.Permit != nil && call.Permit.Shown.Load()
}

// TotalPermits returns how many permits there are if no number is set; 0 if the request does not say.
func (call *Call) TotalPermits() int {
	if call.Permit == nil {
		return 0
	}
	return int(call.Permit.Count)
}

// PermitsTogether returns how many permits an OpAcquire wants.
func (call *Call) PermitsTogether() int {
	return max(call.Permit.Together, 1)
}

// CheckTogether returns an error if an OpAcquire cannot want n permits; 0 is for a request that does not say.
func (call *Call) CheckTogether(n int) error {
	switch {
	case n < 0 || n > machine.MaxTogether:
		return fmt.Errorf("%d permits are wanted together, and must be between 1 and %d", n, machine.MaxTogether)
	case n > 0 && !TraitsOf(call.Kind).Permits:
		return errors.New("only an expirable semaphore has permits, and none is wanted of another lock")
	}
	return nil
}

// IDs returns the ids of all permits that were granted.
func (p *Permit) IDs() (all []string) { return idsOf(p.ID, p.Together) }

func idsOf(first machine.PermitID, n int) (all []string) {
	for _, id := range (machine.Permits{First: first, N: max(n, 1)}).AppendTo(nil) {
		all = append(all, id.String())
	}
	return all
}

// Permitted stores the first id of the permits that were granted, and the end of their validity.
func (call *Call) Permitted(id machine.PermitID, until machine.Instant) {
	call.Permit.ID = id
	call.Permit.Until.Store(int64(until))
}

// PermitID returns the first id of the permits that were granted; false if the call is about a lock.
func (call *Call) PermitID() (id machine.PermitID, isPermit bool) {
	if !TraitsOf(call.Kind).Permits {
		return id, false
	}
	return call.Permit.ID, true
}
