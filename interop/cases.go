package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

// testcase is a case.
type testcase struct {
	name string
	// bothSides says that both sides hold and wait; otherwise the case runs both ways.
	bothSides bool
	// applies reports whether it runs for a kind; nil: for all.
	applies func(kind) bool
	run     func(*env)
}

// sequential cases run alone, since they measure times, or start processes.
var sequential = []testcase{
	{"unusual names", false, single, names}, // first, since a JVM is slow at first
	{"a release wakes the other side", false, nil, wake},
	{"mutual exclusion under load", true, exclusive, load},
	{"readers and writers under load", true, only(write), readersAndWriters},
	{"a turn under load", false, only(plain, fenced, fair, write), turns},
	{"equal shares", true, only(plain, fenced, write), shares},
	{"one goroutine, one thread", true, only(plain, fenced, write), pair},
	{"grants of each side", true, only(fair), rates},
	{"tokens under load", true, only(fenced), tokens},
	{"in order of arrival", false, only(fair), order},
	{"a killed waiter", false, only(fair), killedWaiter},
}

// parallel cases usually wait: for a lease to end, or for renewals. They run for all kinds at the
// same time.
var parallel = []testcase{
	{"re-entry, TTL, renewal", false, nil, reentry},
	{"a lease that ends", false, nil, leaseEnds},
	{"another lease", true, only(plain, fenced, fair), extended},
	{"try with wait and lease", false, nil, tries},
	{"force-unlock", false, nil, forced},
	{"readers share, a writer waits", false, only(write), share},
	{"a writer becomes a reader", false, only(write), downgrade},
	{"a renewal never shortens another lease", false, only(write), longest},
}

var (
	// killing runs for all kinds with one process of each side, which is killed once.
	killing = testcase{name: "a killed holder"}
	leaving = testcase{"what is left in Redis", true, nil, leftovers}
)

// load: two Java clients of four threads and two Go processes of four holders add to a number in
// Redis by GET and SET. If two ever hold the lock at the same time, the sum is wrong.
func load(s *env) {
	const threads = 2 * 4 // on each side
	key, total := s.name+":sum", s.rounds()
	ofJava := total / threads / 2
	ofGo := total/threads - ofJava
	defer s.remove(key)

	began := time.Now()
	var javas, gos []*request
	for i := range threads {
		javas = append(javas, s.workerThread(java, i).begin("rmw", "key="+key, fmt.Sprint("rounds=", ofJava)))
		// Without a pause Go would finish before Java is warm, and usually hand the lock off in memory.
		// With it the lock changes sides.
		gos = append(gos, s.workerThread(golang, i).begin("rmw", "key="+key, fmt.Sprint("rounds=", ofGo), "pause=5"))
	}
	for _, r := range gos {
		r.within(10 * timeout)
	}
	took, java := time.Since(began), s.number(key)-threads*ofGo
	for _, r := range javas {
		r.within(10 * timeout)
	}
	sum := s.number(key)
	s.addFigure("sum %d of %d in %s", sum, total, inMS(time.Since(began)))
	s.addFigure("when Go had done its %d, after %s, Java had done %d", threads*ofGo, inMS(took), java)
	check(sum == total, "updates were lost: two held the lock at the same time")
}

// rounds is how often the lock is acquired under load.
func (s *env) rounds() int {
	if s.kind.red {
		return s.times(5000, 400)
	}
	return s.times(5000, 1000)
}

// turns: while many threads of one side hand the lock off among themselves, one thread of the other
// side is granted it again and again; the sum shows mutual exclusion.
func turns(s *env) {
	key, rounds := s.name+":sum", s.times(500, 150)
	defer s.remove(key)
	var many []*request
	for i := range 4 {
		t := s.thread(fmt.Sprint("one of many", i), s.holding, s.driver(s.holding, s.kind.watchdog(), 0)).as(s.kind.held)
		many = append(many, t.begin("rmw", "key="+key, fmt.Sprint("rounds=", rounds)))
	}
	waiter := s.waiter(long)
	var waits []time.Duration
	for slices.ContainsFunc(many, (*request).pending) {
		waits = append(waits, waiter.do("lock").held(true).took())
		try(s.counters().Do(s.ctx, s.counters().B().Set().Key(key).Value(strconv.Itoa(s.number(key)+1)).Build()).Error())
		waiter.do("unlock")
	}
	for _, r := range many {
		r.await()
	}
	s.addFigure("%d turns with %d: wait %s", len(waits), len(many)*rounds, quantiles(waits))
	check(s.number(key) == len(many)*rounds+len(waits), "updates were lost: two held the lock at the same time")
	check(slices.Max(waits) < short+soon, "a wait took %v", slices.Max(waits))
}

// wake: the poll bound is a minute and the TTL 30 s, so only the message of the release can wake
// the waiter within a second.
func wake(s *env) {
	holder, waiter := s.holder(s.kind.watchdog()), s.waiter(s.kind.watchdog())
	var latencies []time.Duration
	rounds := s.times(200, 50)
	if s.misses() {
		rounds /= 4 // each round takes longer; see untilWaiting
	}
	for range rounds {
		latencies = append(latencies, handOver(s, holder, waiter))
	}
	s.addFigure("%d rounds: %s", len(latencies), quantiles(latencies))
	if missed := len(latencies) - len(slices.DeleteFunc(latencies, func(l time.Duration) bool { return l > soon })); missed > 0 {
		s.addFigure("Redisson missed %d messages, and waited until the TTL was over", missed)
	}
}

// handOver passes the lock from one thread to another, and returns how long that took.
func handOver(s *env, from, to *thread) time.Duration {
	from.do("lock")
	waits := to.begin("lock")
	s.untilWaiting()
	check(waits.pending(), "%s got the lock while it was held", to.side.name)
	released := from.do("unlock").at()
	latency := waits.await().at().Sub(released)
	to.do("unlock")
	limit := soon
	if s.misses() {
		limit += s.kind.watchdog()
	}
	check(latency < limit, "the waiter for %q was woken only after %v", s.name, latency)
	return latency
}

// names: both sides derive the same channel from any name. In a cluster a lock does not work if the braces in
// its name put its channel into another slot.
func names(s *env) {
	holder, waiter := s.holder(s.kind.watchdog()), s.waiter(s.kind.watchdog())
	all := []string{"%s", "a{%s}b", "{}%s", "{%s", "}%s", "%s ключ 鍵 🔑", "%s:*?[a]\\ +%%,=", strings.Repeat("long", 100) + "%s"}
	used := 0
	for _, name := range all {
		s.name = fmt.Sprintf(name, s.runID)
		if s.redis.cluster() && keyspace.Slot(s.name) != keyspace.Slot(keyspace.Channel(s.name)) {
			continue
		}
		handOver(s, holder, waiter)
		used++
	}
	s.addFigure("%d names", used)
}

var ownerFormat = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)

// reentry: the count in Redis is the holder's count, the watchdog keeps the lock for longer than its TTL, and the other
// side sees both and is excluded.
func reentry(s *env) {
	if s.kind.held.kind == read.kind && s.holding == java && s.leavesOutReaders() {
		return
	}
	holder, waiter := s.holder(short), s.waiter(short)
	watcher := s.thread("watcher", s.waiting, waiter.driver).as(s.kind.held)
	// Redisson's MultiLock and RedLock have no such calls. And Java's RedLock has a different
	// owner on each server, none of which has a majority.
	asked := func(side side) bool {
		return single(s.kind) || side == golang && !(s.kind.red && s.holding == java)
	}
	var owner string
	counts := func(want int) {
		var count string
		owner, count = s.owner()
		check(count == strconv.Itoa(want), "Redis has a count of %q, want %d", count, want)
		for _, each := range strings.Fields(owner) {
			check(ownerFormat.MatchString(each), "the owner is %q", each)
		}
		most := short
		if s.kind.held.writes() && s.holding == java {
			most *= 3 // Redisson adds the lease of a re-entry to the rest of the TTL
		}
		ttl := s.ttl()
		check(ttl > 0 && ttl <= most, "the TTL is %v", ttl)
		s.leases(owner, want, most)
		if asked(s.holding) {
			check(holder.do("count").number("count") == int64(want), "%s does not see its own count of %d", holder.side.name, want)
		}
		if asked(s.waiting) {
			check(watcher.do("islocked").values["locked"] == "true", "%s does not see the lock", watcher.side.name)
			seen := watcher.do("ttl").number("ttl")
			check(seen > 0 && seen <= most.Milliseconds(), "%s sees a TTL of %d ms", watcher.side.name, seen)
		}
		if watcher.side == golang && asked(golang) {
			seen := watcher.do("inspect")
			check(seen.number("count") == int64(want) && strings.Contains(owner, seen.values["holder"]), "Go sees %v", seen)
		}
	}
	for n := 1; n <= 3; n++ {
		holder.do("lock").held(true)
		counts(n)
	}
	waiter.do("trylock").held(false)
	waits := waiter.begin("lock")
	s.untilWaiting()

	renewals, last, lowest := 0, s.ttl(), short
	for began := time.Now(); time.Since(began) < short*3/2; time.Sleep(10 * time.Millisecond) {
		ttl := s.ttl()
		if ttl > last {
			renewals++
		}
		last, lowest = ttl, min(lowest, ttl)
	}
	s.addFigure("%d renewals in %v, TTL never below %s", renewals, short*3/2, inMS(lowest))
	check(renewals >= 2, "the lock is not renewed") // every second, 4 would be in time
	check(waits.pending(), "%s got the lock while it was held", waiter.side.name)

	before := owner
	counts(3)
	check(owner == before, "the owner has changed from %s to %s", before, owner)
	holder.do("unlock")
	counts(2)
	holder.do("unlock")
	counts(1)
	check(waits.pending(), "%s got the lock while it was held", waiter.side.name)
	released := holder.do("unlock").at()
	granted := waits.await().at()
	check(granted.Sub(released) < soon, "the waiter was woken only after %v", granted.Sub(released))
	after, count := s.owner()
	check(after != before && count == "1", "%s holds the lock %s times, and before it was %s", after, count, before)
	waiter.do("unlock")
}

// leases checks the lease keys of a reader's holds.
func (s *env) leases(owner string, holds int, most time.Duration) {
	p := s.kind.parts(s.name)[0]
	if p.kind != read.kind {
		return
	}
	for n := 1; n <= holds; n++ {
		left := s.serverOf(p).ttl(s.ctx, p.lease(owner, n))
		check(left > 0 && left <= most, "the TTL of hold %d is %v", n, left)
	}
	left := s.serverOf(p).ttl(s.ctx, p.lease(owner, holds+1))
	check(left < 0, "there is a hold %d of %d", holds+1, holds)
}

// tries: a try ends in time, leaves nothing behind, and gets its own lease, which is not renewed.
func tries(s *env) {
	const wait, lease = 400 * time.Millisecond, 700 * time.Millisecond
	holder, waiter := s.holder(long), s.waiter(long)
	holder.do("lock")
	once := waiter.do("trylock").held(false).took()
	check(once < soon, "a try without a wait took %v", once)
	waited := waiter.do("trylock", fmt.Sprint("wait=", wait.Milliseconds())).held(false).took()
	check(waited >= wait-time.Millisecond && waited < wait+soon, "a try took %v instead of %v", waited, wait)
	s.addFigure("gave up after %s (once) and %s (wait=%v)", inMS(once), inMS(waited), wait)
	s.untilListening(0)

	waits := waiter.begin("trylock", "wait=10000", fmt.Sprint("lease=", lease.Milliseconds()))
	s.untilWaiting()
	released := holder.do("unlock").at()
	granted := waits.await().held(true).at()
	check(granted.Sub(released) < soon, "the waiter was woken only after %v", granted.Sub(released))
	ttl := s.ttl()
	check(ttl > 0 && ttl <= lease, "the TTL is %v", ttl)
	// Go counts its lease from when it sent the command, perhaps long before Redis set the TTL, but not before
	// the release.
	early := released.Add(s.waiting.end(lease) - clockStep)

	back := holder.do("trylock", "wait=10000").held(true).at()
	check(back.Sub(granted) < lease+soon, "a lease of %v kept the lock for %v", lease, back.Sub(granted))
	check(back.After(early), "a lease of %v was over %v too early", lease, early.Sub(back))
	s.addFigure("a lease of %v kept the lock for %s", lease, inMS(back.Sub(granted)))
	untouched(s, func() { waiter.refused() })
	holder.do("unlock")
}

// leftovers: no key and no channel is left, except the token counters, and keys that expire: Lockkeeper's
// last commands, and the keys with which Redisson repeats an unlock, if a process died before it could
// delete them.
func leftovers(s *env) {
	var keys, channels []string
	pattern := "*" + s.runID + "*"
	counters, calls, latches := 0, 0, 0
	collect := func() {
		keys, channels, counters, calls, latches = nil, nil, 0, 0, 0
		for _, r := range append([]server{s.redis}, s.reds...) {
			for _, key := range r.keys(s.ctx, pattern) {
				switch kind, _, _ := strings.Cut(key, ":"); {
				case kind == "redisson_lock_token":
					counters++
				case kind == "lockkeeper_calls" && r.ttl(s.ctx, key) > 0:
					calls++
				case kind == "redisson_unlock_latch" && r.ttl(s.ctx, key) > 0:
					latches++
				default:
					keys = append(keys, key)
				}
			}
			channels = append(channels, r.channels(s.ctx, pattern)...)
		}
	}
	// On a busy machine a connection may be replaced late, and its channels with it.
	deadline := time.Now().Add(timeout / 2)
	s.until("Redis is clean, or the time is over", func() bool {
		collect()
		return len(keys)+len(channels) == 0 || time.Now().After(deadline)
	})
	s.addFigure("%d keys, %d channels", len(keys), len(channels))
	if latches > 0 {
		s.addFigure("%d unlock latches of Redisson, which expire", latches)
	}
	if calls > 0 {
		s.addFigure("%d last commands of Lockkeeper, which expire", calls)
	}
	s.addFigure("%d token counters", counters)
	check(len(keys)+len(channels) == 0, "left: %q, %q", keys, channels)
	for _, key := range s.redis.keys(s.ctx, "redisson_lock_token:"+pattern) {
		s.remove(key)
	}
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

func quantiles(of []time.Duration) string {
	slices.Sort(of)
	return fmt.Sprintf("p50 %s, p99 %s, max %s", inMS(quantile(of, 50)), inMS(quantile(of, 99)), inMS(quantile(of, 100)))
}

// inMS formats a duration in milliseconds, or in seconds from 1 s.
func inMS(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.2f s", ms/1000)
	}
}
