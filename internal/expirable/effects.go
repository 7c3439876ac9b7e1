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
	// IDs are the permits to take, to give back, to renew, or to keep taken. Counts say how many of them belong to each
	// request of an Acquire, or to each hold of a Release. Leases are one for each request of an Acquire, or for each
	// permit of a Restore. Lease is that of a Renew, and of permits for which a Restore waits. Reserve is the time for
	// which an Acquire reserves free permits for its first request if that wants several and waits.
	IDs     []machine.PermitID
	Counts  []int
	Leases  []time.Duration
	Lease   time.Duration
	Reserve time.Duration
	// Mode and Count are of a Set.
	Mode  SetMode
	Count int
	// At Deadline the semaphore stops waiting for the reply. After Latest the reply has no more use: until then, the
	// reply to a Renew may come late.
	Deadline, Latest Instant
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
	// Served is the number of an Acquire's requests that got their permits. Wait is the time until the next permit
	// expires; negative if none does. For a Restore, it is the time that the Restore must wait.
	Served int
	Wait   time.Duration
	// Valid says, for each hold of a Release and each permit of a Renew, whether it was taken until then. Receivers is
	// the number of clients that have heard of a Release.
	Valid     []bool
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
		h.ends = s.now + req.MaxHold
	}
	s.holds = append(s.holds, &h)
	s.noteEnd(&h)
	s.effects.Add(machine.Effect{Kind: machine.Reply, Ref: req.Ref, Answer: machine.Answer{
		Kind: machine.Granted, HoldID: h.id, Count: 1, Until: h.end(), FirstRef: h.ref, HandedOff: handedOff,
		Permits: &h.permits,
	}})
}
