// Package judge reports whether what has happened in a run is what Lockkeeper promises.
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

// Limits are what the promises depend on.
type Limits struct {
	// Lease is the longest TTL that is in use, and Silence how long a dead waiter of a
	// fair lock is waited for.
	Lease, Silence time.Duration
	// Slack is for a machine that is busy: how late a loss may be told, beyond the time
	// for which the process is known not to have run.
	Slack time.Duration
	// Idle is how long a lock that somebody waits for may be free while nothing hinders.
	Idle time.Duration
	// Awake is how soon a request that can be granted must be, while nothing hinders. If it is not 0, no lease may
	// be lost then.
	Awake time.Duration
	// Order is how much earlier than another's a request for a fair lock must have been
	// made to be certain to come first.
	Order time.Duration
	// Overtakes is in how many turns one process may overtake another that waits; 0 if that is
	// not promised. Turn is how long a turn is at most, from its first grant to its last, and Join
	// how long a request may take until it is in the line.
	Overtakes  int
	Turn, Join time.Duration
	// Checker bounds the time for each lock's linearizability.
	Checker time.Duration
}

// Violation is a promise that was broken.
type Violation struct {
	// Check is what has noticed, Lock where, At when.
	Check  string        `json:"check"`
	Lock   string        `json:"lock,omitempty"`
	At     time.Duration `json:"at"`
	Detail string        `json:"detail"`
	// Picture is a page that shows it, if there is one.
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

// Verdict is what the judge found.
type Verdict struct {
	Violations []Violation `json:"violations,omitempty"`
	// Undecided are the locks for which the checker of linearizability ran out of time.
	Undecided []string `json:"undecided,omitempty"`

	Operations int            `json:"operations"`
	Unknown    int            `json:"unknown_outcomes"`
	Grants     map[string]int `json:"grants"`  // by lock
	Refusals   map[string]int `json:"refused"` // by reason
	Losses     map[string]int `json:"losses"`  // told, by reason
	// Robbed is how much trust in one lock overlapped right after it was taken away
	// behind Lockkeeper's back, which is outside what is promised.
	Robbed time.Duration `json:"overlap_after_robbery"`
	// LongestIdle is the longest that a lock was free while somebody waited for it, and
	// LongestUnhindered the same without the time for which faults are an excuse.
	LongestIdle       time.Duration `json:"longest_without_holder"`
	LongestUnhindered time.Duration `json:"longest_without_holder_or_excuse"`
	// Waits is how many waits of processes were judged by how often they were overtaken, and
	// MostOvertaken the most turns of one other process.
	Waits         int `json:"waits_in_line"`
	MostOvertaken int `json:"most_overtaken"`
	// LatestLoss is the longest between the end of the trust and the news of the loss,
	// without the time for which the process did not run.
	LatestLoss time.Duration `json:"latest_loss"`

	// Leases are how many were held and lost beside goroutines that compute, by library.
	Leases map[string]Leases `json:"leases,omitempty"`

	began []time.Duration // of every operation
}

// OK reports whether every promise was kept, and everything decided.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 && len(v.Undecided) == 0 }

// Until tells how many operations there were until then.
func (v *Verdict) Until(at time.Duration) int {
	n := 0
	for _, began := range v.began {
		if began <= at {
			n++
		}
	}
	return n
}

// Judge looks at all that has happened.
//
// stuck are the processes that did not come to rest, ended those that have ended by themselves.
// left are the keys that were found after the end, and found are the permits.
func Judge(spans history.Span, processes []*history.Process, faults []history.Fault, stuck, ended []int, left []string, found map[string]Permits, limits Limits) *Verdict {
	j := &judge{limits: limits, span: spans, processes: processes, faults: faults,
		v: &Verdict{Grants: map[string]int{}, Refusals: map[string]int{}, Losses: map[string]int{}}}
	j.collect()
	for _, proc := range stuck {
		j.violated("every request is answered", "", spans.To, "process %d did not come to rest", proc)
	}
	for _, proc := range ended {
		j.violated("no process is ended", "", spans.To, "process %d has ended although nobody killed it", proc)
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
		case edgeSemaphore, edgeLatch:
			j.edge(lock, found)
			continue
		case leased:
			j.permits(lock, found)
			j.idle(lock)
			j.asleep(lock)
			j.keeps(lock)
			continue
		case semaphore:
			j.semaphore(lock, found)
			j.asleep(lock)
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
		j.asleep(lock)
		j.keeps(lock)
		j.bounded(lock)
		j.linearizable(lock)
	}
	j.forced()
	j.losses()
	j.promises()
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

// lock is what has happened to one lock.
type lock struct {
	name, kind string
	shares     []share // in the order of the requests
	changes    []share // likewise, of a synchronizer: requests after which nobody has anything
}

// share is a request, as far as it is about one lock.
type share struct {
	*history.Request
	part  history.Part
	token int64
	proc  *history.Process
}

// collect sorts what has happened by locks.
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
				s := share{Request: r, part: part, proc: p}
				if i < len(r.Tokens) {
					s.token = r.Tokens[i]
				}
				if part.Does == "" {
					l.shares = append(l.shares, s)
				} else {
					l.changes = append(l.changes, s)
				}
			}
		}
	}
	for _, l := range j.locks {
		for _, all := range [][]share{l.shares, l.changes} {
			slices.SortStableFunc(all, func(a, b share) int { return int(a.Asked - b.Asked) })
		}
	}
	slices.SortFunc(j.locks, func(a, b *lock) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
}

func (j *judge) count(r *history.Request) {
	j.v.began = append(j.v.began, r.Asked)
	if r.Releasing != 0 {
		j.v.began = append(j.v.began, r.Releasing)
	}
	j.v.Operations = len(j.v.began)
	if r.Answered == 0 || r.Releasing != 0 && (r.Released == 0 || r.Doubtful) {
		j.v.Unknown++
	}
	switch {
	case r.Granted:
		for _, part := range r.Parts {
			name := strings.TrimRight(part.Lock, "-0123456789") // whichever, of those that are in use for a while
			if part.Does != "" {
				name += ": " + part.Does
			}
			j.v.Grants[name]++
		}
	case strings.HasPrefix(r.Err, history.Discloses):
		j.v.Refusals[strings.TrimSpace(history.Discloses)]++
	case r.Answered != 0:
		j.v.Refusals[r.Err]++
	}
	if r.Told != 0 {
		j.v.Losses[r.Why]++
	}
}

func (j *judge) violated(check, lock string, at time.Duration, format string, args ...any) {
	j.v.Violations = append(j.v.Violations, Violation{Check: check, Lock: lock, At: at, Detail: fmt.Sprintf(format, args...)})
}

// hindered tells how much of a span there is an excuse for, to one process or, below 0,
// to any: a fault, until what it has left behind is certainly over, or the machine.
func (j *judge) hindered(s history.Span, proc int, lock string) time.Duration {
	return covered(s, append(j.excuses(proc, lock), j.stalls(proc)...))
}

// excuses are the spans in which faults are an excuse.
func (j *judge) excuses(proc int, lock string) (spans []history.Span) {
	for i := range j.faults {
		f := &j.faults[i]
		if (f.Hinders || f.Robs) && (proc < 0 || f.Proc < 0 || f.Proc == proc) && (f.Lock == "" || f.Lock == lock) {
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

// robbed are the spans in which a lock that was taken away behind Lockkeeper's back may
// still be trusted: a renewal that was sent before may have set the TTL.
func (j *judge) robbed(lock string) (spans []history.Span) {
	for i := range j.faults {
		if f := &j.faults[i]; f.Robs && (f.Lock == "" || f.Lock == lock) {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease})
		}
	}
	return spans
}

// wiped are the spans in which Redis has forgotten what it knew of a lock.
func (j *judge) wiped(lock string) (spans []history.Span) {
	for i := range j.faults {
		if f := &j.faults[i]; f.Wipes && (f.Lock == "" || f.Lock == lock) {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease})
		}
	}
	return spans
}

func within(spans []history.Span, from, to time.Duration) bool {
	return slices.ContainsFunc(spans, func(s history.Span) bool { return from < s.To && to > s.From })
}
