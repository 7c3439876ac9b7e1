package main

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest/rig"
)

// distances is s14: two processes near Redis and one far away contend for one lock.
func distances() (list []scenario) {
	kinds := []struct {
		name  string
		kind  kind
		title string
	}{{"plain", plain, "plain lock"}, {"fenced", fenced, "fenced lock"}, {"write", write, "write lock"}, {"multi", multi, "MultiLock of two"}}
	for _, k := range kinds {
		for _, hold := range []int{0, 2, 20} {
			for _, away := range []int{1, 5, 20} {
				s := scenario{
					name: fmt.Sprintf("s14-%s-%dms-%dms", k.name, hold, away), section: "s14-" + k.name,
					title:     "distance, " + k.title + ": 2 processes beside Redis and 1 far away, with 4 goroutines each; hold + distance",
					processes: 3, goroutines: 4, kind: k.kind, oneKey: true, stretch: 2,
					work: time.Duration(hold) * time.Millisecond, distance: time.Duration(away) * time.Millisecond,
					libs: []string{ours}, columns: distanceColumns, run: (*task).compare,
				}
				if k.kind != multi {
					s.libs = append(s.libs, oursByMessage)
				}
				if k.kind == plain && hold == 20 {
					s.libs = slices.Concat(s.libs, []string{limitQueue}, peers)
				}
				list = append(list, s)
			}
		}
	}
	return list
}

// crowds is s15: one process requests a read/write lock in another mode than 8 others.
func crowds() (list []scenario) {
	for _, away := range []int{0, 5} {
		s := scenario{
			section: "s15-writer", title: "one process writes, among 8 that read for 300 ms, with 1 goroutine each",
			processes: 9, goroutines: 1, kind: amongReaders, oneKey: true, stretch: 5,
			work: 300 * time.Millisecond, distance: time.Duration(away) * time.Millisecond,
			libs: []string{ours, oursByMessage}, columns: crowdColumns, run: (*task).compare,
		}
		s.name = fmt.Sprintf("%s-%dms", s.section, away)
		list = append(list, s)
	}
	for _, s := range slices.Clone(list) {
		s.section, s.title = "s15-reader", "one process reads, among 8 that write for 20 ms, with 1 goroutine each"
		s.name = fmt.Sprintf("%s-%dms", s.section, s.distance.Milliseconds())
		s.kind, s.work = amongWriters, 20*time.Millisecond
		list = append(list, s)
	}
	return list
}

// shares is s17: three processes near Redis contend for one lock.
func shares() (list []scenario) {
	for _, k := range []struct {
		name string
		kind kind
	}{{"plain", plain}, {"fenced", fenced}, {"fair", fair}, {"write", write}, {"readwrite", readWrite}} {
		list = append(list, scenario{
			name: "s17-" + k.name, section: "s17", title: "equal shares: 3 processes with 4 goroutines each on one key", shares: k.name,
			processes: 3, goroutines: 4, kind: k.kind, oneKey: true,
			libs: []string{ours}, columns: shareColumns, run: (*task).compare,
		})
	}
	return list
}

// hasOddProcess reports whether the last process uses another mode than the others.
func (s scenario) hasOddProcess() bool { return s.kind == amongReaders || s.kind == amongWriters }

// compares reports whether the processes are compared with each other.
func (s scenario) compares() bool { return s.distance > 0 || s.hasOddProcess() || s.shares != "" }

func (t *task) last(s scenario) bool { return t.Index == s.processes-1 }

// compare is pairs with the round trip to Redis.
func (t *task) compare(c candidate, lib library, s scenario) (report, error) {
	trip, err := roundTrip(t.Addr)
	if err != nil {
		return report{}, err
	}
	r, err := t.pairs(c, lib, s)
	r.RoundTrip = trip
	return r, err
}

// roundTrip is the median of nine.
func roundTrip(addr string) (time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var trips []time.Duration
	for replies := rig.NewReader(conn); len(trips) < 9; {
		sent := time.Now()
		if _, err := conn.Write(rig.Request("PING")); err != nil {
			return 0, err
		}
		if _, err := replies.Next(); err != nil {
			return 0, err
		}
		trips = append(trips, time.Since(sent))
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// waitStats measures how the users of a process share the lock with other processes. A wait counts from its
// start if it ends in the measured time, or if it has not ended by then.
type waitStats struct {
	*phases
	task *task
	turn time.Duration // the length of a turn; a longer sequence is two turns

	mu          sync.Mutex
	asked       []time.Time // when each user began to wait; zero if it does not wait
	holding     int
	since       time.Time     // when the process began to wait; zero if it holds the lock or does not wait
	longest     time.Duration // longest wait of a user
	processWait time.Duration // longest wait of the process, without a grant to any of its users
	turns       int           // a grant begins one after a grant to another process, or if the turn was long enough
	began       time.Time     // when the present turn began
	changes     int           // times that the lock came to this process from another
}

func newWaitStats(t *task, s scenario, p *phases) *waitStats {
	return &waitStats{phases: p, task: t, turn: s.turn(t.Lib), asked: make([]time.Time, s.goroutines)}
}

func (w *waitStats) begin(user int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[user] = time.Now()
	w.startWait(w.asked[user])
}

// startWait begins a wait of the process, if one of its users waits.
func (w *waitStats) startWait(at time.Time) {
	if w.holding == 0 && w.since.IsZero() && slices.ContainsFunc(w.asked, func(t time.Time) bool { return !t.IsZero() }) {
		w.since = at
	}
}

// enter is called under the lock.
func (w *waitStats) enter(user int) {
	me := int64(w.task.Index + 1)
	before := w.task.shared.last.Swap(me)
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := before != me
	another := changed || time.Since(w.began) >= w.turn
	if another {
		w.began = time.Now()
	}
	if w.counts() {
		w.measure(user)
		if another {
			w.turns++
		}
		if changed {
			w.changes++
		}
	}
	w.asked[user], w.since = time.Time{}, time.Time{}
	w.holding++
}

// leave is called under the lock.
func (w *waitStats) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding--
	w.startWait(time.Now())
}

// measure updates the longest waits of a user and of the process, including waits that go on.
func (w *waitStats) measure(user int) {
	if at := w.asked[user]; !at.IsZero() {
		w.longest = max(w.longest, time.Since(at))
	}
	if !w.since.IsZero() {
		w.processWait = max(w.processWait, time.Since(w.since))
	}
}

// report adds the results at the end of the measured time.
func (w *waitStats) report(r *report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.asked {
		w.measure(i)
	}
	r.Turns, r.Changes, r.Longest, r.Without = w.turns, w.changes, w.longest, w.processWait
}

// handOffLimit is Lockkeeper's default, and late the delay until the last grant within it is
// observed.
const (
	handOffLimit = 5 * time.Millisecond
	late         = time.Millisecond
)

// handOffTime is how long a process of a library hands the lock off in memory.
func handOffTime(lib string) time.Duration {
	if isPeer(lib) || lib == limitQueue {
		return 0
	}
	return handOffLimit
}

// turn is how long after the first grant of a turn another one begins at the latest.
func (s scenario) turn(lib string) time.Duration {
	return max(s.work, handOffTime(lib)+late)
}

// compare adds the grants and turns of the processes, and the bounds for fair turns.
//
// If processes get their turns one after another, a process waits for one turn of each other
// one, which may hand the lock off until the hand-off limit, and for round trips to the far
// one; that bounds the wait of a process. A user waits as often as there are users before it.
// A writer among readers waits for the present readers, and for those that joined before it.
//
// The round trip alone limits the far process to one turn in the time of a turn and a round
// trip, even without other processes. Turns are compared, not grants, since further grants
// within a turn cost no round trip.
func (r *result) compare(t task, s scenario, reports []report) {
	last, changes := reports[s.processes-1], 0
	for i := range reports {
		grants := 0
		for _, n := range reports[i].Grants {
			grants += n
		}
		r.GrantsEach = append(r.GrantsEach, grants)
		r.TurnsEach = append(r.TurnsEach, reports[i].Turns)
		changes += reports[i].Changes
		r.Longest = max(r.Longest, micros(reports[i].Longest))
		r.Without = max(r.Without, micros(reports[i].Without))
	}
	turn := max(s.work, handOffTime(t.Lib))
	r.RoundTrip = micros(last.RoundTrip)
	r.Bound = float64(s.processes+1) * (micros(turn) + r.RoundTrip)
	if s.hasOddProcess() {
		r.TurnsEach = nil
		r.P50, r.P99, r.Longest, r.Without = last.Times.quantile(0.5), last.Times.quantile(0.99), micros(last.Longest), micros(last.Without)
		if s.kind == amongReaders {
			r.Bound = 2 * micros(s.work)
		}
		return
	}
	r.Possible = last.Seconds * 1e6 / (micros(turn) + r.RoundTrip)
	r.SentPerTurn = float64(reports[0].Redis.Sent) / float64(max(changes, 1))
	r.AllPerTurn = float64(reports[0].Redis.All) / float64(max(changes, 1))
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// allowed is the fair number of turns of the far process: the average of the others, if the
// round trip allows it.
func (r result) allowed() (turns float64, all bool) {
	others := r.TurnsEach[:len(r.TurnsEach)-1]
	for _, n := range others {
		turns += float64(n) / float64(len(others))
	}
	if r.Possible < turns {
		return r.Possible, false
	}
	return turns, true
}
