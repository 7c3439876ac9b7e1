package main

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// distances is s14: two processes beside Redis and one that is further away want the same lock.
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
					libs: []string{ours}, columns: distanceColumns, bars: 2, run: (*task).compare,
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

// crowds is s15: one process wants a read/write lock otherwise than 8 others.
func crowds() (list []scenario) {
	for _, away := range []int{0, 5} {
		s := scenario{
			section: "s15-writer", title: "one process writes, among 8 that read for 300 ms, with 1 goroutine each",
			processes: 9, goroutines: 1, kind: amongReaders, oneKey: true, stretch: 5,
			work: 300 * time.Millisecond, distance: time.Duration(away) * time.Millisecond,
			libs: []string{ours, oursByMessage}, columns: crowdColumns, bars: 2, run: (*task).compare,
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

// shares is s17: three processes want the same lock, all of them beside Redis.
func shares() (list []scenario) {
	for _, k := range []struct {
		name string
		kind kind
	}{{"plain", plain}, {"fenced", fenced}, {"fair", fair}, {"write", write}, {"readwrite", readWrite}} {
		list = append(list, scenario{
			name: "s17-" + k.name, section: "s17", title: "everybody's share: 3 processes with 4 goroutines each on one key", shares: k.name,
			processes: 3, goroutines: 4, kind: k.kind, oneKey: true,
			libs: []string{ours}, columns: shareColumns, bars: 2, run: (*task).compare,
		})
	}
	return list
}

// odd says that the last process wants something else than the others.
func (s scenario) odd() bool { return s.kind == amongReaders || s.kind == amongWriters }

// compares says that the processes are compared with each other.
func (s scenario) compares() bool { return s.distance > 0 || s.odd() || s.shares != "" }

func (t *task) last(s scenario) bool { return t.Index == s.processes-1 }

// compare is pairs, and how far away Redis is.
func (t *task) compare(c candidate, lib library, s scenario) (report, error) {
	trip, err := roundTrip(t.Addr)
	if err != nil {
		return report{}, err
	}
	r, err := t.pairs(c, lib, s)
	r.RoundTrip = trip
	return r, err
}

// roundTrip is the median of some.
func roundTrip(addr string) (time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var trips []time.Duration
	for replies := bufio.NewReader(conn); len(trips) < 9; {
		sent := time.Now()
		if _, err := conn.Write([]byte("PING\r\n")); err != nil {
			return 0, err
		}
		if _, err := replies.ReadString('\n'); err != nil {
			return 0, err
		}
		trips = append(trips, time.Since(sent))
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// A line is what the users of a process see of the other processes. A wait counts if it ends
// while the time counts, and then from its beginning; one that has not ended counts as well.
type line struct {
	*phases
	task *task
	turn time.Duration // what is longer is two turns

	mu      sync.Mutex
	asked   []time.Time // when each user began to wait; zero if it does not
	holding int
	since   time.Time     // when the process began to wait; zero if it holds the lock or does not want it
	longest time.Duration // wait of a user
	without time.Duration // longest wait of the process, with none of its users granted
	turns   int           // a grant begins one if another process had the lock before, or the turn was long enough
	began   time.Time     // when the present one did
	changes int           // of the process that has the lock, to this one
}

func newLine(t *task, s scenario, p *phases) *line {
	return &line{phases: p, task: t, turn: s.turn(t.Lib), asked: make([]time.Time, s.goroutines)}
}

func (l *line) begin(user int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[user] = time.Now()
	l.wait(l.asked[user])
}

// wait begins a wait of the process, if it waits.
func (l *line) wait(at time.Time) {
	if l.holding == 0 && l.since.IsZero() && slices.ContainsFunc(l.asked, func(t time.Time) bool { return !t.IsZero() }) {
		l.since = at
	}
}

// enter is called under the lock.
func (l *line) enter(user int) {
	me := int64(l.task.Index + 1)
	before := l.task.shared.last.Swap(me)
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := before != me
	another := changed || time.Since(l.began) >= l.turn
	if another {
		l.began = time.Now()
	}
	if l.counts() {
		l.measure(user)
		if another {
			l.turns++
		}
		if changed {
			l.changes++
		}
	}
	l.asked[user], l.since = time.Time{}, time.Time{}
	l.holding++
}

// leave is called under the lock.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding--
	l.wait(time.Now())
}

// measure looks at the waits of a user and of the process, be they over or not.
func (l *line) measure(user int) {
	if at := l.asked[user]; !at.IsZero() {
		l.longest = max(l.longest, time.Since(at))
	}
	if !l.since.IsZero() {
		l.without = max(l.without, time.Since(l.since))
	}
}

// report is for the end of the time that counts.
func (l *line) report(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.asked {
		l.measure(i)
	}
	r.Turns, r.Changes, r.Longest, r.Without = l.turns, l.changes, l.longest, l.without
}

// handOffLimit is Lockkeeper's default, and late how much later the last grant may be seen that
// it allows.
const (
	handOffLimit = 5 * time.Millisecond
	late         = time.Millisecond
)

// tenure is for how long a process of a library passes the lock on in memory.
func tenure(lib string) time.Duration {
	if isPeer(lib) || lib == limitQueue {
		return 0
	}
	return handOffLimit
}

// turn is how long after the first grant of a turn another one begins, if not before.
func (s scenario) turn(lib string) time.Duration {
	return max(s.work, tenure(lib)+late)
}

// compare adds what the processes have got, and what would be right.
//
// Processes that get their turns one after another wait for one turn of each, in which it may
// pass the lock on until the hand-off limit, and the lock goes to and from the far one; that
// bounds the wait of a process, of which each of its users has as many as there are before it.
// A writer among readers waits for those who read, and for those who had joined before it.
//
// The round trip itself allows the far process one turn in the time that a turn and a round
// trip take, even if nobody else wants the lock. It is told apart from others by its turns, as
// what it has within one of them costs no round trip.
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
	turn := max(s.work, tenure(t.Lib))
	r.RoundTrip = micros(last.RoundTrip)
	r.Bound = float64(s.processes+1) * (micros(turn) + r.RoundTrip)
	if s.odd() {
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

// allowed is how many turns the far process should have had: as many as the others on
// average, if the round trip allows it.
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
