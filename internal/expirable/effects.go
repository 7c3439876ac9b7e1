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
	// Number is that of a command that Redis carries out once; a Renew has none.
	Number uint64
	// IDs are the permits to take, to give back, to renew, or to keep taken. Leases are those of an
	// Acquire or a Restore, one for each. Lease is that of a Renew, and of permits for which a Restore waits.
	IDs    []machine.PermitID
	Leases []time.Duration
	Lease  time.Duration
	// How and Count are of a Set.
	How   How
	Count int
	// Deadline is when the semaphore stops waiting for the reply, and Latest when the reply has no more use: that to a
	// Renew may come late until then.
	Deadline, Latest Instant
}

// How is how a Set sets the number of permits; expirable_set.lua says what each means.
type How string

// The ways to set the number of permits.
const (
	Try   How = "try"
	Total How = "set"
	Add   How = "add"
	// Restore is Try by a process that gives the number with its requests. Its permits stay taken, and it
	// waits for the leases of others.
	Restore How = "restore"
)

// Result is the outcome of a Command.
type Result struct {
	// Missing says, for an Acquire, that no number of permits is set.
	Missing bool
	// Served is how many of an Acquire's permits were taken. Wait is in what time the next permit
	// expires; negative: none does. Of a Restore, it is how long that must wait.
	Served int
	Wait   time.Duration
	// Valid says, for each permit of a Release or a Renew, whether it was taken until then. Receivers is
	// how many clients have heard of a Release.
	Valid     []bool
	Receivers int
	// Done says, for a Set, that the number was set.
	Done bool
	// Err is the error, temporary (Transient) or permanent. Unsure says that the script may have
	// run all the same; Unconfirmed that it has, but too few replicas are known to have what it wrote.
	Err         error
	Transient   bool
	Unsure      bool
	Unconfirmed bool
}

// NextEffect writes the next effect to e, and reports whether there is one. The semaphore forgets it then. The Ref of a
// Send is a *Command.
func (p *Semaphore) NextEffect(e *machine.Effect) bool {
	if p.taken == len(p.effects) {
		if p.effects, p.taken = p.effects[:0], 0; cap(p.effects) > keptEffects {
			p.effects = nil
		}
		return false
	}
	*e = p.effects[p.taken]
	p.effects[p.taken] = machine.Effect{}
	p.taken++
	return true
}

// keptEffects is for how many effects the memory is used again.
const keptEffects = 8

func (p *Semaphore) effect(e machine.Effect) { p.effects = append(p.effects, e) }

// answer ends a request, if ref is one.
func (p *Semaphore) answer(ref any, a machine.Answer) {
	if ref != nil {
		p.effect(machine.Effect{Kind: machine.Reply, Ref: ref, Answer: a})
	}
}

// refuse ends a request for a permit.
func (p *Semaphore) refuse(req *Request, reason machine.Reason, detail string) {
	p.answer(req.Ref, machine.Answer{Kind: machine.NotGranted, Reason: reason, TTL: -1, Detail: detail})
}

// grant makes a request the holder of a permit, one that was handed on to it or one of its own.
func (p *Semaphore) grant(req *Request, h hold, handedOff bool) {
	h.id, h.owner, h.ref, h.shown = req.ID, req.Owner, req.Ref, req.Shown
	if req.MaxHold > 0 {
		h.ends = p.now + req.MaxHold
	}
	p.holds = append(p.holds, &h)
	p.wakeAt.sooner(h.end())
	p.effect(machine.Effect{Kind: machine.Reply, Ref: req.Ref, Answer: machine.Answer{
		Kind: machine.Granted, HoldID: h.id, Count: 1, Until: h.end(), Bound: h.bound(), FirstRef: h.ref, HandedOff: handedOff,
		Permit: &h.permit,
	}})
}

// failure says why a command has failed.
func failure(r Result) (machine.Reason, string) {
	return machine.Failure(r.Err, r.Transient, r.Unconfirmed)
}
