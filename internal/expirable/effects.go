package expirable

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// CommandKind is the operation of a Command.
type CommandKind uint8

// The operations; package scripts has a script for each.
const (
	Acquire CommandKind = iota + 1
	Release
	Renew
	Set
)

// Command is one script to run.
type Command struct {
	Kind CommandKind
	Seq  uint64
	// Number is the number of a command that Redis carries out once; a Renew has none.
	Number uint64
	// IDs are the permits to take, to give back, to renew, or to keep taken.
	IDs []machine.PermitID
	// Counts say how many of the IDs belong to each request of an Acquire, or to each hold of a Release.
	Counts []int
	// Leases are the leases of the requests of an Acquire, or of the permits of a Restore.
	Leases []time.Duration
	// Lease is the lease that a Renew sets; for a Restore, the lease of the permits for which it waits.
	Lease time.Duration
	// Reserve is the time for which an Acquire reserves permits for its first request if that wants several and waits.
	Reserve time.Duration
	// Mode says how a Set sets the number of permits.
	Mode SetMode
	// Count is the number of permits that a Set sets or adds.
	Count int
	// Deadline is the time at which the semaphore stops waiting for the reply.
	Deadline Instant
	// Latest is the time until which the reply to a Renew may come late. After it the reply has no use.
	Latest Instant
}

// SetMode is how a Set sets the number of permits; expirable_set.lua says what each mode means.
type SetMode string

// The ways to set the number of permits.
const (
	SetIfUnset SetMode = "try"
	SetTotal   SetMode = "set"
	SetAdd     SetMode = "add"
	// Delete deletes the semaphore, unless permits are taken.
	Delete SetMode = "delete"
	// Restore is SetIfUnset by a process that gives the number with its requests. Its permits stay taken, and it
	// waits for the leases of others.
	Restore SetMode = "restore"
)

// Result is the outcome of a Command.
type Result struct {
	// Missing says, for an Acquire, that no number of permits is set.
	Missing bool
	// Served is the number of an Acquire's requests that got their permits.
	Served int
	// Wait is the time until the next permit expires; negative if none does. For a Restore, it is the time that the
	// Restore must wait.
	Wait time.Duration
	// Valid says, for each hold of a Release and each permit of a Renew, whether it was taken until then.
	Valid []bool
	// Receivers is the number of clients that have heard of a Release.
	Receivers int
	// Done says, for a Set, that the number was set, or the semaphore deleted.
	Done bool
	machine.Failure
}

// NextEffect writes the next effect to e and removes it. It reports whether there was one. The Ref of a Send is a
// *Command.
func (s *Semaphore) NextEffect(e *machine.Effect) bool { return s.effects.Next(e) }

// refuse ends a request for a permit.
func (s *Semaphore) refuse(req *Request, reason machine.Reason, detail string) {
	s.effects.Answer(req.Ref, machine.Answer{Kind: machine.NotGranted, Reason: reason, TTL: -1, Detail: detail})
}

// grant makes a request the holder of permits, which were handed off to it or are its own.
func (s *Semaphore) grant(req *Request, h hold, handedOff bool) {
	h.id, h.owner, h.ref, h.shown = req.ID, req.Owner, req.Ref, req.Shown
	h.unwatched = req.Unwatched
	if req.MaxHold > 0 {
		h.maxEnd = s.now + req.MaxHold
	}
	s.holds = append(s.holds, &h)
	s.nextEnd.Add(h.end())
	s.effects.Add(machine.Effect{Kind: machine.Reply, Ref: req.Ref, Answer: machine.Answer{
		Kind: machine.Granted, HoldID: h.id, Count: 1, Until: h.end(), FirstRef: h.ref, HandedOff: handedOff,
		Permits: &h.permits,
	}})
}
