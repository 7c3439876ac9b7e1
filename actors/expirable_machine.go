package actors

import (
	"crypto/rand"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/request"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// permits is the machine of an expirable semaphore.
type permits struct {
	expirable.Semaphore
	// system is how the ids of its permits begin.
	system [8]byte
}

func (p *permits) Acquire(now lock.Instant, req lock.Request) {
	call := req.Ref.(*request.Call)
	p.Semaphore.Acquire(now, expirable.Request{Request: req, Random: p.newPermitID(), Shown: call.ShowsPermit(), Total: call.TotalPermits()})
}

// newPermitID makes an id that begins with the System (see keyspace.PermitSystemOf), so that a reader
// knows which process has the permit. The rest is random: 64 bits, which cannot be guessed.
func (p *permits) newPermitID() (id expirable.ID) {
	n := copy(id[:], p.system[:])
	_, _ = rand.Read(id[n:]) // it never fails
	return id
}

func (p *permits) Release(now lock.Instant, id uint64, owner lock.Owner, _ lock.Mode, ref any) {
	if first := p.First(owner); first != 0 {
		id = first
	}
	p.Semaphore.Release(now, id, ref.(*request.Call).ShowsPermit(), ref)
}

func (p *permits) Subscribed(now lock.Instant, _ uint64) { p.Semaphore.Subscribed(now) }

// What is for locks only is refused before it comes here, or is no more than a hint.

func (p *permits) ForceRelease(lock.Instant, lock.Mode, lock.Owners, any) {}
func (p *permits) Ensure(lock.Instant, uint64, time.Duration, any)        {}
func (p *permits) Transferred(lock.Instant, lock.Transfer)                {}
func (p *permits) Suspect(lock.Instant)                                   {}
func (p *permits) Term() uint64                                           { return 0 }

// LeaseUntil is not known: each permit has a lease of its own.
func (p *permits) LeaseUntil() lock.Instant { return 0 }

func (p *permits) Effects() (lock.Effect, bool) {
	e, ok := p.Semaphore.Effects()
	if !ok {
		return lock.Effect{}, false
	}
	switch {
	case e.Kind == lock.Send:
		return lock.Effect{Kind: lock.Send, Ref: e.Command}, true
	case e.Kind == lock.Reply && e.Answer.Kind == lock.Granted:
		e.Ref.(*request.Call).Permitted(e.Permit, e.Answer.Until)
	}
	return lock.Effect{Kind: e.Kind, Ref: e.Ref, Answer: e.Answer}, true
}

func (p *permits) Snapshot() lock.Snapshot {
	held, waiters, until := p.Semaphore.Snapshot()
	return lock.Snapshot{HeldHere: held > 0, Count: held, Waiters: waiters, Until: until}
}
