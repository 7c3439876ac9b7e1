// Package judge checks the histories of a run against what Lockkeeper promises.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Limits are the parameters of the promises.
type Limits struct {
	// Lease is the longest TTL in use.
	Lease time.Duration
	// Silence is how long a dead waiter of a fair lock blocks its queue.
	Silence time.Duration
	// Slack is the tolerance for a busy machine: how late the notification of a loss may be, not
	// counting the time for which the process is known not to have run.
	Slack time.Duration
	// Idle is how long a lock with waiters may be free while nothing hinders.
	Idle time.Duration
	// GrantWithin is how soon a request that can be granted must be, while nothing hinders. If it is not 0, no lease
	// may be lost either.
	GrantWithin time.Duration
	// Order is how much earlier than another a request for a fair lock must be made to be sure
	// to be granted first.
	Order time.Duration
	// Overtakes is in how many turns one process may overtake another that waits; 0 if that is not promised.
	Overtakes int
	// Turn is how long a turn is at most, from its first grant to its last.
	Turn time.Duration
	// Join is how long a request may take to enter the wait queue.
	Join time.Duration
	// Start is the time from the beginning of a round for which nothing is promised about the order.
	Start time.Duration
	// Checker bounds the time of the linearizability check of each lock.
	Checker time.Duration
}

// Violation is a promise that was broken.
type Violation struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Lock is the lock for which the check failed.
	Lock string `json:"lock,omitempty"`
	// At is the time at which the promise was broken.
	At     time.Duration `json:"at"`
	Detail string        `json:"detail"`
	// Picture is the path of a page that shows it, if there is one.
	Picture string `json:"picture,omitempty"`

	model *porcupine.Model
	info  *porcupine.LinearizationInfo
}

func (v Violation) String() string {
	return fmt.Sprintf("%s, lock %q, at %v: %s", v.Check, v.Lock, v.At, v.Detail)
}

// Draw writes the violation's picture to a file, if it has one.
func (v *Violation) Draw(path string) error {
	if v.info == nil {
		return nil
	}
	v.Picture = path
	return porcupine.VisualizePath(*v.model, *v.info, path)
}

// Verdict is the result of the judge.
type Verdict struct {
	Violations []Violation `json:"violations,omitempty"`
	// Undecided are the locks whose linearizability check ran out of time.
	Undecided []string `json:"undecided,omitempty"`

	Operations int            `json:"operations"`
	Unknown    int            `json:"unknown_outcomes"`
	Grants     map[string]int `json:"grants"`  // by lock
	Refusals   map[string]int `json:"refused"` // by reason
	Losses     map[string]int `json:"losses"`  // notified, by reason
	// ExcusedOverlap is for how long two valid holds of one lock overlapped after Redis dropped the
	// lock before the end of its lease, for which nothing is promised.
	ExcusedOverlap time.Duration `json:"excused_overlap"`
	// LongestIdle is the longest time that a lock with waiters was free.
	LongestIdle time.Duration `json:"longest_without_holder"`
	// LongestUnhindered is the same without the time excused by faults.
	LongestUnhindered time.Duration `json:"longest_without_holder_or_excuse"`
	// Waits is how many waits of processes were checked for overtaking.
	Waits int `json:"queue_waits"`
	// MaxOvertaken is the most turns of one other process during a wait.
	MaxOvertaken int `json:"max_overtaken"`
	// LatestLoss is the longest time between the end of a hold's validity and the notification of
	// the loss, without the time for which the process did not run.
	LatestLoss time.Duration `json:"latest_loss"`

	// Leases are the leases held and lost in processes with busy goroutines, by library.
	Leases map[string]Leases `json:"leases,omitempty"`

	began []time.Duration // of every operation
}

// OK reports whether every promise was kept, and every check decided.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 && len(v.Undecided) == 0 }

// Until returns how many operations began until at.
func (v *Verdict) Until(at time.Duration) int {
	n := 0
	for _, began := range v.began {
		if began <= at {
			n++
		}
	}
	return n
}

// Judge checks the histories of a round.
//
// stuck are the processes that did not come to rest, ended those that ended by themselves.
// left are the keys found in Redis after the end, and found the permits.
func Judge(spans history.Span, processes []*history.Process, faults []history.Fault,
	stuck, ended []int, left []string, found map[string]Permits, limits Limits) *Verdict {
	j := &judge{limits: limits, span: spans, processes: processes, faults: faults,
		v: &Verdict{Grants: map[string]int{}, Refusals: map[string]int{}, Losses: map[string]int{}}}
	j.collect()
	for _, proc := range stuck {
		j.violated("every request is answered", "", spans.To, "process %d did not come to rest", proc)
	}
	for _, proc := range ended {
		j.violated("no process crashes", "", spans.To, "process %d has ended although it was not killed", proc)
	}
	for _, key := range left {
		j.violated("nothing is left on any server", "", spans.To, "all clients have come to rest, but %s", key)
	}
	for _, lock := range j.locks {
		switch lock.kind {
		case peer:
			continue
		case foreign:
			j.foreign(lock)
			continue
		case job:
			j.trust(lock)
			j.keepsMinimum(lock)
			continue
		case edgeSemaphore, edgeLatch:
			j.edge(lock, found)
			continue
		case expirable:
			j.permits(lock, found)
			j.idle(lock)
			j.unserved(lock)
			j.keepsLeases(lock)
			continue
		case semaphore:
			j.semaphore(lock, found)
			j.unserved(lock)
			continue
		case latch:
			j.latch(lock, found)
			j.opened(lock)
			continue
		}
		j.trust(lock)
		j.tokens(lock)
		j.order(lock)
		j.idle(lock)
		j.unserved(lock)
		j.keepsLeases(lock)
		j.bounded(lock)
		j.linearizable(lock)
	}
	j.forced()
	j.losses()
	j.promises()
	j.extensions()
	j.calls()
	j.compare()
	slices.SortStableFunc(j.v.Violations, func(a, b Violation) int { return int(a.At - b.At) })
	return j.v
}

type judge struct {
	limits    Limits
	span      history.Span
	processes []*history.Process
	faults    []history.Fault
	locks     []*lock
	v         *Verdict
}

// lock is the history of one lock.
type lock struct {
	name, kind string
	requests   []lockRequest // in the order of the requests
	changes    []lockRequest // likewise; changes of a synchronizer, which leave no hold
}

// lockRequest is a request for one lock, or one part of a request for several.
type lockRequest struct {
	*history.Request
	part  history.Part
	token int64
	proc  *history.Process
}

// collect groups the requests by lock.
func (j *judge) collect() {
	byName := map[string]*lock{}
	for _, p := range j.processes {
		for _, r := range p.Requests {
			j.count(r)
			for i, part := range r.Parts {
				l := byName[part.Lock]
				if l == nil {
					l = &lock{name: part.Lock, kind: part.Kind}
					byName[part.Lock] = l
					j.locks = append(j.locks, l)
				}
				if l.kind != part.Kind {
					l.kind = mixed
				}
				s := lockRequest{Request: r, part: part, proc: p}
				if i < len(r.Tokens) {
					s.token = r.Tokens[i]
				}
				if part.Action == "" {
					l.requests = append(l.requests, s)
				} else {
					l.changes = append(l.changes, s)
				}
			}
		}
	}
	for _, l := range j.locks {
		for _, all := range [][]lockRequest{l.requests, l.changes} {
			slices.SortStableFunc(all, func(a, b lockRequest) int { return int(a.Asked - b.Asked) })
		}
	}
	slices.SortFunc(j.locks, func(a, b *lock) int { return cmp.Compare(a.name, b.name) })
}

func (j *judge) count(r *history.Request) {
	j.v.began = append(j.v.began, r.Asked)
	if r.Releasing != 0 {
		j.v.began = append(j.v.began, r.Releasing)
	}
	j.v.Operations = len(j.v.began)
	if r.Answered == 0 || r.Releasing != 0 && (r.Released == 0 || r.OutcomeUnknown) {
		j.v.Unknown++
	}
	switch {
	case r.Granted:
		for _, part := range r.Parts {
			name := strings.TrimRight(part.Lock, "-0123456789") // without the number of locks that are in use for a while
			if part.Action != "" {
				name += ": " + part.Action
			}
			j.v.Grants[name]++
		}
	case strings.HasPrefix(r.Err, history.Discloses):
		j.v.Refusals[strings.TrimSpace(history.Discloses)]++
	case r.Answered != 0:
		j.v.Refusals[r.Err]++
	}
	if r.Notified != 0 {
		j.v.Losses[r.LossReason]++
	}
}

func (j *judge) violated(check, lock string, at time.Duration, format string, args ...any) {
	j.v.Violations = append(j.v.Violations, Violation{Check: check, Lock: lock, At: at, Detail: fmt.Sprintf(format, args...)})
}

// hindered returns how much of a span is excused, for one process or, if proc is below 0,
// for any: by a fault, until its consequences are certainly over, or by a stall.
func (j *judge) hindered(s history.Span, proc int, lock string) time.Duration {
	return covered(s, append(j.excuses(proc, lock), j.stalls(proc)...))
}

// excuses are the spans excused by faults.
func (j *judge) excuses(proc int, lock string) (spans []history.Span) {
	for i := range j.faults {
		f := &j.faults[i]
		if (f.Hinders || f.BreaksLeases) && (proc < 0 || f.Proc < 0 || f.Proc == proc) && (f.Lock == "" || f.Lock == lock) {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease + j.limits.Silence})
		}
	}
	return spans
}

// stalls are the spans in which a process, or below 0 any of them, did not run.
func (j *judge) stalls(proc int) (spans []history.Span) {
	for _, p := range j.processes {
		if proc < 0 || p.Proc == proc {
			spans = append(spans, p.Stalls...)
		}
	}
	return spans
}

// covered is how much of a span others cover.
func covered(s history.Span, by []history.Span) (sum time.Duration) {
	slices.SortFunc(by, func(a, b history.Span) int { return cmp.Compare(a.From, b.From) })
	at := s.From
	for _, e := range by {
		if e.To > at {
			sum += history.Span{From: max(e.From, at), To: e.To}.Overlap(s)
			at = max(at, e.To)
		}
	}
	return sum
}

// brokenLeases are the spans in which a lock that Redis dropped before the end of its lease
// may still be trusted: a renewal that was sent before may have set the TTL.
func (j *judge) brokenLeases(lock string) (spans []history.Span) {
	for i := range j.faults {
		if f := &j.faults[i]; f.BreaksLeases && (f.Lock == "" || f.Lock == lock) {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease})
		}
	}
	return spans
}

// erased are the spans after Redis lost its data about a lock.
func (j *judge) erased(lock string) (spans []history.Span) {
	for i := range j.faults {
		if f := &j.faults[i]; f.ErasesData && (f.Lock == "" || f.Lock == lock) {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease})
		}
	}
	return spans
}

func within(spans []history.Span, from, to time.Duration) bool {
	return slices.ContainsFunc(spans, func(s history.Span) bool { return from < s.To && to > s.From })
}
