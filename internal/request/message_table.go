package request

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// requestMessages contains the operation of each request message, and the function that reads it. The answers are in
// by_message.go, and the checks in check.go.
var requestMessages = byType(
	aboutLock(OpAcquire, readAcquire),
	aboutLock(OpRelease, readRelease),
	aboutLock(OpExtend, readExtend),
	aboutLock(OpCancel, func(_ *Rules, m *messages.Cancel, _ *Call, by *ByMessage) error {
		by.belongsTo(m.Owner)
		return nil
	}),
	aboutLock(OpForceRelease, readForceRelease),
	aboutLock(OpInspect, func(*Rules, *messages.Inspect, *Call, *ByMessage) error { return nil }),
	aboutLock(OpReleaseID, readReleaseByID),
	aboutLock(OpSet, readSetExpirablePermits),

	aboutSemaphore(OpAcquire, func(m *messages.AcquirePermits, call *Call) error {
		call.Count.N = orOne(m.Permits)
		return call.wait(m.Wait)
	}),
	aboutSemaphore(OpRelease, func(m *messages.ReleasePermits, call *Call) error {
		call.Count.N, call.Count.IfExists = orOne(m.Permits), m.IfExists
		return nil
	}),
	aboutSemaphore(OpCancel, func(*messages.CancelPermits, *Call) error { return nil }),
	aboutSemaphore(OpSet, readTrySetPermits),
	aboutSemaphore(OpAdd, func(m *messages.AddPermits, call *Call) error {
		call.Count.N = int64(m.Permits)
		return nil
	}),
	aboutSemaphore(OpDrain, func(*messages.DrainPermits, *Call) error { return nil }),
	aboutSemaphore(OpDelete, func(*messages.DeletePermits, *Call) error { return nil }),
	aboutSemaphore(OpInspect, func(*messages.InspectPermits, *Call) error { return nil }),

	aboutLatch(OpAcquire, func(m *messages.AwaitLatch, call *Call) error { return call.wait(m.Wait) }),
	aboutLatch(OpRelease, func(m *messages.CountDown, call *Call) error {
		call.Count.ID = m.Id
		return nil
	}),
	aboutLatch(OpCancel, func(*messages.CancelAwait, *Call) error { return nil }),
	aboutLatch(OpSet, func(m *messages.TrySetCount, call *Call) error {
		call.Count.N = m.Count
		return nil
	}),
	aboutLatch(OpDelete, func(*messages.DeleteLatch, *Call) error { return nil }),
	aboutLatch(OpInspect, func(*messages.InspectLatch, *Call) error { return nil }),
)

// requestMessage is the operation that a request message asks for, and how to read the message.
type requestMessage struct {
	message reflect.Type
	op      Op
	// read fills the Call and its ByMessage; after an error both are complete enough to send a refusal.
	read func(r *Rules, m any, call *Call, by *ByMessage) error
}

// correlated is implemented by every request message.
type correlated interface{ GetCorrelationId() string }

func byType(rows ...requestMessage) map[reflect.Type]*requestMessage {
	table := map[reflect.Type]*requestMessage{}
	for i := range rows {
		table[rows[i].message] = &rows[i]
	}
	return table
}

// IsMessage reports whether a message is a request.
func IsMessage(m any) bool { return requestMessages[reflect.TypeOf(m)] != nil }

// Read turns a request message into a Call; call is nil for any other message. Even the Call of an invalid message can
// be refused.
func (r *Rules) Read(m any, sender *actor.PID) (call *Call, err error) {
	m, lifeOf := r.lives(m, sender)
	row := requestMessages[reflect.TypeOf(m)]
	if row == nil {
		return nil, nil
	}
	var both struct { // together, which is cheaper
		call Call
		by   ByMessage
	}
	call, by := &both.call, &both.by
	by.message, by.correlationID, by.replyTo = row.message, m.(correlated).GetCorrelationId(), sender
	if acquire, is := m.(*messages.Acquire); is && sender == nil {
		by.replyTo = acquire.GetOwner() // set before read, since a wrong lock is refused there, too
	}
	if sender != nil && !IsFuture(sender) {
		by.belongsTo(sender)
	}
	call.Op, call.By, call.Permit = row.op, by, &by.permit
	err = row.read(r, m, call, by)
	if by.replyTo != nil {
		by.life = lifeOf(by.replyTo)
	}
	if by.ownerPID != nil {
		by.ownerLife = lifeOf(by.ownerPID)
	}
	return call, err
}

func aboutLock[M interface{ GetLock() *messages.Lock }](op Op, read func(*Rules, M, *Call, *ByMessage) error) requestMessage {
	return requestMessage{reflect.TypeFor[M](), op, func(r *Rules, m any, call *Call, by *ByMessage) error {
		by.lock = m.(M).GetLock()
		if by.lock == nil {
			return errors.New("the request names no lock")
		}
		call.Kind, call.Mode, call.Name = by.lock.Kind, by.lock.Mode, by.lock.Name
		if err := r.nameMembers(call, by.lock); err != nil {
			return err
		}
		if err := call.fits(); err != nil {
			return err
		}
		return read(r, m.(M), call, by)
	}}
}

func aboutSemaphore[M interface{ GetSemaphore() *messages.Semaphore }](op Op, read func(M, *Call) error) requestMessage {
	return aboutCount(op, messages.Kind_KIND_SEMAPHORE, "semaphore", func(m M, by *ByMessage) (name string, named bool) {
		by.semaphore = m.GetSemaphore()
		return by.semaphore.GetName(), by.semaphore != nil
	}, read)
}

func aboutLatch[M interface{ GetLatch() *messages.Latch }](op Op, read func(M, *Call) error) requestMessage {
	return aboutCount(op, messages.Kind_KIND_LATCH, "latch", func(m M, by *ByMessage) (name string, named bool) {
		by.latch = m.GetLatch()
		return by.latch.GetName(), by.latch != nil
	}, read)
}

func aboutCount[M any](op Op, kind messages.Kind, noun string, name func(M, *ByMessage) (string, bool),
	read func(M, *Call) error) requestMessage {
	return requestMessage{reflect.TypeFor[M](), op, func(r *Rules, m any, call *Call, by *ByMessage) error {
		named := false
		call.Kind, call.Count = kind, new(Count)
		call.Name, named = name(m.(M), by)
		switch {
		case !named:
			return errors.New("the request names no " + noun)
		case op == OpAcquire && r.Foreign(by.replyTo):
			return errors.New("the request comes from another node, whose death looks like a broken connection: " +
				"run a Lockkeeper System on that node")
		case op == OpAcquire && by.replyTo == nil:
			return errors.New("the request has no sender: no actor would receive the answer")
		}
		return errors.Join(read(m.(M), call), r.checkCount(call))
	}}
}

// fits returns an error if the operation is not for that kind of lock.
func (call *Call) fits() error {
	switch permits := TraitsOf(call.Kind).Permits; {
	case (call.Op == OpReleaseID || call.Op == OpSet) && !permits:
		return fmt.Errorf("the request is for KIND_EXPIRABLE_SEMAPHORE only, and not for %v", call.Kind)
	case call.Op == OpForceRelease && permits:
		return fmt.Errorf("the request is not for %v: release a permit by its id", call.Kind)
	}
	return nil
}

func readAcquire(r *Rules, m *messages.Acquire, call *Call, by *ByMessage) error {
	by.belongsTo(m.Owner)
	call.Unwatched = by.ownerPID == nil || r.Foreign(by.ownerPID) || r.Foreign(by.replyTo)
	call.Permit.Together = int(m.Permits)
	call.Permit.Shown.Store(m.ShowPermit)
	call.NoReentry, call.Note = m.NoReentry, m.Note
	call.Lease, call.MaxHold, call.AtLeast = m.Lease.AsDuration(), m.MaxHold.AsDuration(), m.AtLeast.AsDuration()
	_ = call.wait(m.Wait) // which checkTimes checks as well
	var err error
	if m.Owner != nil && IsFuture(m.Owner) {
		err = errors.New("the owner is a future, which cannot be watched: name an actor, or no owner")
	}
	err = errors.Join(err, checkTimes(m, call), call.CheckNote(), call.CheckTogether(call.Permit.Together),
		r.CheckRed(call.Kind, call.Members, call.Lease))
	if err == nil {
		err = r.checkEnd(m, by)
	}
	return err
}

func readRelease(r *Rules, m *messages.Release, call *Call, by *ByMessage) error {
	return r.readHold(m.Owner, m.HoldId, call, by)
}

func readExtend(r *Rules, m *messages.Extend, call *Call, by *ByMessage) error {
	call.Lease = m.Lease.AsDuration()
	return errors.Join(checkTime("lease", m.Lease), call.CheckTimes(), r.CheckRed(call.Kind, call.Members, call.Lease),
		r.readHold(m.Owner, m.HoldId, call, by))
}

// readHold reads which hold a request is about.
func (r *Rules) readHold(owner *actor.PID, id string, call *Call, by *ByMessage) error {
	by.belongsTo(owner)
	if id == "" {
		if r.Foreign(by.ownerPID) {
			return errNoHoldID
		}
		return nil
	}
	by.ownerPID, call.HoldID = nil, parseHoldID(id)
	return nil
}

func readForceRelease(_ *Rules, m *messages.ForceRelease, call *Call, _ *ByMessage) error {
	call.Owners = m.Owners
	return CheckOwners(m.Owners)
}

func readReleaseByID(_ *Rules, m *messages.ReleaseByID, call *Call, _ *ByMessage) (err error) {
	call.Permit.ID, err = ParsePermitID(m.PermitId)
	return err
}

func readSetExpirablePermits(_ *Rules, m *messages.SetExpirablePermits, call *Call, _ *ByMessage) error {
	if _, known := messages.SetPermitsHow_name[int32(m.How)]; !known {
		return fmt.Errorf("the way %d to set permits is unknown; known are %s", m.How, listed(messages.SetPermitsHow_name))
	}
	call.Permit.How, call.Permit.Count = m.How, m.Permits
	return CheckPermits(m.How, m.Permits)
}

func readTrySetPermits(m *messages.TrySetPermits, call *Call) error {
	call.Count.N, call.Count.TTL = int64(m.Permits), m.Ttl.AsDuration()
	switch {
	case m.Ttl == nil:
		return nil
	case m.Ttl.CheckValid() == nil && call.Count.TTL == 0:
		return errors.New("the ttl is zero: leave it out for none")
	}
	return m.Ttl.CheckValid()
}

// wait reads how long a request waits: with zero it tries once; without a wait there is no limit.
func (call *Call) wait(d *durationpb.Duration) error {
	if d == nil {
		return nil
	}
	call.Wait = d.AsDuration()
	call.Try = call.Wait == 0
	return d.CheckValid()
}

func orOne(n int32) int64 {
	if n == 0 {
		return 1
	}
	return int64(n)
}
