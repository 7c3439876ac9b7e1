package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Request is one request for a lock, with its answer, its hold and its release. Times of
// events that did not happen are 0.
type Request struct {
	Proc, Worker, ID int
	// Root is the ID of the request whose hold this one re-entered; its own if none.
	Root      int
	Parts     []Part
	Unlimited bool
	// AtLeast is the minimum time of the request's hold, from the grant.
	AtLeast time.Duration
	// Bound is how long the answer may take; 0 for no limit.
	Bound time.Duration

	Asked, Answered time.Duration
	// Granted is the answer.
	Granted bool
	// Err is the reason of a refusal.
	Err    string
	Count  int
	Tokens []int64

	// First is the first time at which the hold was certainly valid.
	First time.Duration
	// Last is the last time at which the hold was certainly valid.
	Last time.Duration
	// Invalid is the time from which the hold was not valid.
	Invalid             time.Duration
	Extensions          []Extension
	Notified            time.Duration
	LossReason          string
	Releasing, Released time.Duration
	// ReleaseErr is why the hold was not released.
	ReleaseErr string
	// OutcomeUnknown says that the hold may have been released.
	OutcomeUnknown bool
	// Died is when the holder died: an actor, or the whole process.
	Died time.Duration
}

// Owner names the holder of the request.
func (r *Request) Owner() string { return fmt.Sprintf("%d/%d", r.Proc, r.Root) }

func (r *Request) String() string {
	return fmt.Sprintf("request %d of process %d", r.ID, r.Proc)
}

// Outer reports whether the request is not a re-entry.
func (r *Request) Outer() bool { return r.Root == r.ID }

// Ended is when the hold ended for its holder; 0 if it did not.
func (r *Request) Ended() time.Duration {
	var end time.Duration
	for _, at := range []time.Duration{r.Notified, r.Released, r.Died} {
		if at != 0 && (end == 0 || at < end) {
			end = at
		}
	}
	return end
}

// Span is a period of time.
type Span struct{ From, To time.Duration }

// Overlap is the length of the intersection of two spans.
func (s Span) Overlap(o Span) time.Duration { return max(min(s.To, o.To)-max(s.From, o.From), 0) }

// Count is a hold count in Redis.
type Count struct {
	Request   *Request
	At        time.Duration
	Got, Want int
}

// Ensured is a promise that a hold will last from From until To.
type Ensured struct {
	Request *Request
	Span
}

// Extension is a call to give a hold a fixed lease, or for 0 the lease of the watchdog. Err is why it failed.
type Extension struct {
	Span
	Lease time.Duration
	Err   string
}

// Call is a call other than a request, with its bound.
type Call struct {
	Name    string
	Request *Request
	Span
	Bound time.Duration
}

// Process is the history of one process.
type Process struct {
	Proc     int
	Requests []*Request
	Stalls   []Span
	Counts   []Count
	Ensured  []Ensured
	Calls    []Call
	// Killed is when it was killed; 0 if it was not.
	Killed time.Duration
}

// Stalled is how long the process could not run during a span.
func (p *Process) Stalled(s Span) (sum time.Duration) {
	for _, each := range p.Stalls {
		sum += s.Overlap(each)
	}
	return sum
}

// Read reads the history that a process wrote. killed is when it was killed, 0 if it was
// not: the last line of a killed process may be cut off.
func Read(path string, proc int, killed time.Duration) (*Process, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Process{Proc: proc, Killed: killed}
	known := map[int]*Request{}
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			if killed != 0 && i == len(lines)-1 {
				break
			}
			return nil, fmt.Errorf("%s, line %d: %w", path, i+1, err)
		}
		if e.Stage == Asked {
			r := &Request{
				Proc: proc, Worker: e.Worker, ID: e.ID, Root: e.Root, Parts: e.Parts,
				Unlimited: e.Unlimited, AtLeast: e.AtLeast, Bound: e.Bound, Asked: e.At,
			}
			known[e.ID] = r
			p.Requests = append(p.Requests, r)
			continue
		}
		p.apply(known[e.ID], e)
	}
	if killed != 0 {
		for _, r := range p.Requests {
			if r.Granted && r.Ended() == 0 {
				r.Died = killed
			}
		}
	}
	slices.SortFunc(p.Requests, func(a, b *Request) int { return int(a.Asked - b.Asked) })
	return p, nil
}

func (p *Process) apply(r *Request, e Event) {
	switch e.Stage {
	case Stalled:
		p.Stalls = append(p.Stalls, Span{e.Since, e.At})
	case Granted:
		r.Granted, r.Answered, r.Count, r.Tokens = true, e.At, e.Count, e.Tokens
	case Refused:
		r.Answered, r.Err = e.At, e.Err
	case Valid:
		if r.First == 0 {
			r.First = e.Since
		}
		r.Last = max(r.Last, e.At)
	case Invalid:
		r.Invalid = e.At
	case Notified:
		r.Notified, r.LossReason = e.At, e.Err
	case Releasing:
		r.Releasing = e.At
	case Released:
		r.Released, r.ReleaseErr, r.OutcomeUnknown = e.At, e.Err, e.OutcomeUnknown
	case Died:
		r.Died = e.At
	case Called:
		p.Calls = append(p.Calls, Call{e.Call, r, Span{e.Since, e.At}, e.Bound})
	case EnsuredUntil:
		p.Ensured = append(p.Ensured, Ensured{r, Span{e.Since, e.At}})
	case Extended:
		r.Extensions = append(r.Extensions, Extension{Span{e.Since, e.At}, e.Lease, e.Err})
	case Counted:
		p.Counts = append(p.Counts, Count{Request: r, At: e.At, Got: e.Count, Want: e.Want})
	}
}

// Fault is a fault of a process, of the network or of Redis.
type Fault struct {
	Name     string        `json:"name"`
	From, To time.Duration `json:"-"`
	// Proc is the process that it affects, -1 for all.
	Proc int `json:"proc"`
	// Hinders: during the fault, and for a while after it, locks may stay without a holder.
	Hinders bool `json:"hinders"`
	// CrashesActors: lock actors may be given up, and then their holders lose the locks.
	CrashesActors bool `json:"crashes_actors,omitempty"`
	// ClockJumps: more time has passed than on the clock of the histories.
	ClockJumps bool `json:"clock_jumps,omitempty"`
	// BreaksLeases: Redis dropped locks before the end of their leases, only this one if Lock is set.
	// ErasesData: fencing tokens start again, and synchronizers are lost.
	BreaksLeases bool   `json:"breaks_leases,omitempty"`
	Lock         string `json:"lock,omitempty"`
	ErasesData   bool   `json:"erases_data,omitempty"`
	// Forces: the lock is released by force, by a command that arrives after From; the operator inspected it before.
	Forces bool `json:"forces,omitempty"`
	// Foreign: from To on the lock's name is another application's key.
	Foreign bool `json:"foreign,omitempty"`
	// Number is the value that a synchronizer was set to directly in Redis.
	Number int64 `json:"number,omitempty"`
	// Takeover: a replica takes over, and may lack the latest releases.
	Takeover bool `json:"takeover,omitempty"`
}

// Span is when the fault lasted.
func (f *Fault) Span() Span { return Span{f.From, f.To} }

// Affects reports whether the fault may affect a lock of a process.
func (f *Fault) Affects(proc int, lock string) bool {
	return (f.Proc < 0 || f.Proc == proc) && (f.Lock == "" || f.Lock == lock)
}
