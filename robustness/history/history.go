package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Request is one request for a lock, and what became of it. Times that did not come
// are 0.
type Request struct {
	Proc, Worker, ID int
	// Root is the ID of the request whose hold this one re-entered; its own if none.
	Root    int
	Parts   []Part
	Patient bool
	// Bound is how long it may take to be answered; 0 for no limit.
	Bound time.Duration

	Asked, Answered time.Duration
	// Granted says how it was answered, Err why not.
	Granted bool
	Err     string
	Count   int
	Tokens  []int64

	// The hold was trusted from First to Last at least; from Invalid on it was not.
	First, Last, Invalid time.Duration
	Told                 time.Duration
	Why                  string
	Releasing, Released  time.Duration
	// ReleaseErr is why it was not released; Doubtful says that it may have been.
	ReleaseErr string
	Doubtful   bool
	// Died is when its holder died: an actor, or the whole process.
	Died time.Duration
}

// Owner names the holder that the request is for.
func (r *Request) Owner() string { return fmt.Sprintf("%d/%d", r.Proc, r.Root) }

func (r *Request) String() string {
	return fmt.Sprintf("request %d of process %d", r.ID, r.Proc)
}

// Outer reports whether the request is not a re-entry.
func (r *Request) Outer() bool { return r.Root == r.ID }

// Ended is when the hold was over for its holder; 0 if it was not.
func (r *Request) Ended() time.Duration {
	var end time.Duration
	for _, at := range []time.Duration{r.Told, r.Released, r.Died} {
		if at != 0 && (end == 0 || at < end) {
			end = at
		}
	}
	return end
}

// Span is a stretch of time.
type Span struct{ From, To time.Duration }

// Overlap is how much two spans have in common.
func (s Span) Overlap(o Span) time.Duration { return max(min(s.To, o.To)-max(s.From, o.From), 0) }

// Count is what Redis said about a hold.
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

// Call is a call that was no request, and how long it might take.
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

// Stalled is how long the process was not able to run during a span.
func (p *Process) Stalled(s Span) (sum time.Duration) {
	for _, each := range p.Stalls {
		sum += s.Overlap(each)
	}
	return sum
}

// Read puts together what a process wrote. killed is when it was killed, 0 if it was
// not: the last line may then be cut off.
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
			r := &Request{Proc: proc, Worker: e.Worker, ID: e.ID, Root: e.Root, Parts: e.Parts, Patient: e.Patient, Bound: e.Bound, Asked: e.At}
			known[e.ID] = r
			p.Requests = append(p.Requests, r)
			continue
		}
		p.take(known[e.ID], e)
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

func (p *Process) take(r *Request, e Event) {
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
	case Told:
		r.Told, r.Why = e.At, e.Err
	case Releasing:
		r.Releasing = e.At
	case Released:
		r.Released, r.ReleaseErr, r.Doubtful = e.At, e.Err, e.Doubtful
	case Died:
		r.Died = e.At
	case Called:
		p.Calls = append(p.Calls, Call{e.Call, r, Span{e.Since, e.At}, e.Bound})
	case EnsuredUntil:
		p.Ensured = append(p.Ensured, Ensured{r, Span{e.Since, e.At}})
	case Counted:
		p.Counts = append(p.Counts, Count{Request: r, At: e.At, Got: e.Count, Want: e.Want})
	}
}

// Fault is something that was done to a process, to the network or to Redis.
type Fault struct {
	Name     string        `json:"name"`
	From, To time.Duration `json:"-"`
	// Proc is whom it concerns, -1 for all.
	Proc int `json:"proc"`
	// Hinders: while it lasts, and for a while after, locks may stay without a holder.
	Hinders bool `json:"hinders"`
	// Fells: lock actors may be given up, and then their holders lose the locks.
	Fells bool `json:"fells,omitempty"`
	// Jumps: more time has passed than the clock of the histories knows of.
	Jumps bool `json:"jumps,omitempty"`
	// Robs: locks were taken from their holders behind the back of Lockkeeper, only
	// this one if Lock is given. Wipes: tokens begin anew, and synchronizers are forgotten.
	Robs  bool   `json:"robs,omitempty"`
	Lock  string `json:"lock,omitempty"`
	Wipes bool   `json:"wipes,omitempty"`
	// Forces: the lock is freed by force, by a command that arrives after From, for an operator that has looked at it before.
	Forces bool `json:"forces,omitempty"`
	// Foreign: the name of the lock belongs to another application's key from To on.
	Foreign bool `json:"foreign,omitempty"`
	// Number is what a synchronizer was set to, past Lockkeeper.
	Number int64 `json:"number,omitempty"`
	// Succeeds: a replica takes over, and may not know what was released a moment before.
	Succeeds bool `json:"succeeds,omitempty"`
}

// Span is how long the fault lasted.
func (f *Fault) Span() Span { return Span{f.From, f.To} }

// Concerns reports whether the fault may change what happens to a lock of a process.
func (f *Fault) Concerns(proc int, lock string) bool {
	return (f.Proc < 0 || f.Proc == proc) && (f.Lock == "" || f.Lock == lock)
}
