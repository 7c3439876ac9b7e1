package main

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// observations reproduce the statements of docs/redisson.md about Redisson, with the ids of that
// page. Each adds figures of what it has observed, and fails only if it cannot observe.
var observations = []struct {
	name string
	run  func(*env)
}{
	{"how an unlock is sent", unlockSent},
	{"P2: renewals after 1000 lock and unlock pairs, then one hold", renewalsSent},
	{"C2: write lock, read lock, read unlock; the watchdog is 3 s", func(s *env) {
		for _, t := range []*thread{s.ofJava(short), s.ofGo(short)} {
			s.name += t.side.name
			t.as(write).do("lock")
			t.as(read).do("lock")
			t.as(read).do("unlock")
			s.addFigure("%s: the write lock %s", t.side.name, s.gone(3*short))
		}
	}},
	{"C6: a MultiLock of a fenced lock with a lease of 1 s", func(s *env) {
		for _, t := range []*thread{s.ofJava(short), s.ofGo(short)} {
			s.name += t.side.name
			alone := form{several: multi.several, members: []string{"fenced"}}
			t.as(alone).do("trylock", "lease=1000")
			left := s.redis.ttl(s.ctx, prefixed("redisson_lock_token", s.name+"-0"))
			s.addFigure("%s: the TTL of the counter of tokens is %s", t.side.name, map[bool]string{true: "none", false: inMS(left)}[left < 0])
		}
	}},
	{"C10: a reader with a lease of 20 s, and one of the other side that renews a TTL of 3 s", func(s *env) {
		for _, pair := range [][2]*thread{{s.ofGo(long), s.ofJava(short)}, {s.ofJava(long), s.ofGo(short)}} {
			holder, other := pair[0].as(read), pair[1].as(read)
			s.name += other.side.name
			holder.do("lock", "lease=20000")
			other.do("lock")
			time.Sleep(short)
			s.addFigure("%s renews: the TTL is %s", other.side.name, inMS(s.ttl()))
			other.driver.kill()
			s.addFigure("%s is killed: the lock %s", other.side.name, s.gone(2*short))
		}
	}},
	{"a lock taken three times with a lease of 3 s: write", func(s *env) {
		for _, t := range []*thread{s.ofJava(short), s.ofGo(short)} {
			s.name += t.side.name
			for range 3 {
				t.as(write).do("lock")
			}
			s.addFigure("%s: the TTL is %s", t.side.name, inMS(s.ttl()))
		}
	}},
	{"a RedLock for which the other side waits 5 s", func(s *env) {
		s.kind = kind{name: "RedLock", held: red, wanted: red, red: true}
		s.ageRedLock(short)
		for _, sides := range [][2]side{{java, golang}, {golang, java}} {
			s.name += sides[0].name
			s.holding, s.waiting = sides[0], sides[1]
			holder, waiter := s.holder(short), s.waiter(short)
			holder.do("lock")
			waits := waiter.begin("lock")
			s.untilListening(1)
			before, _, _ := s.reds[0].load(s.ctx)
			time.Sleep(5 * time.Second)
			after, _, _ := s.reds[0].load(s.ctx)
			s.addFigure("%s waits for %s: %d scripts on each server", waiter.side.name, holder.side.name, after-before)
			holder.do("unlock")
			waits.await()
			waiter.do("unlock")
		}
	}},
	{"C3: lock(), lock(lease 1 s), unlock(); the watchdog is 3 s", func(s *env) {
		for _, t := range []*thread{s.ofJava(short), s.ofGo(short)} {
			s.name += t.side.name
			t.do("lock")
			t.do("lock", "lease=1000")
			ttl := s.ttl()
			t.do("unlock")
			s.addFigure("%s: the inner lock() leaves a TTL of %s, the outer hold %s", t.side.name, inMS(ttl), s.gone(3*short))
		}
	}},
	{"C4: a lease that ends, then lock() on the same object; the watchdog is 30 s", func(s *env) {
		t := s.ofJava(long)
		t.do("lock", "obj=o", "lease=500")
		s.gone(timeout)
		t.do("lock", "obj=o")
		s.addFigure("a TTL of %s, the hold %s", inMS(s.ttl()), s.gone(2*time.Second))
	}},
	{"the watchdog's exceptions in 8 s of lock and unlock pairs; the watchdog is 0.5 s", func(s *env) {
		t := s.ofJava(short / 6)
		answer := t.begin("bench", "scenario=s1", "seconds=8").any()
		s.addFigure("%s: %s pairs %s", answer.word, answer.values["ops"], answer.values["message"])
		for name, n := range exceptions(t.driver) {
			s.addFigure("%d × %s", n, name)
		}
	}},
}

// observe runs all observations, each with processes of its own.
func (w *world) observe() (ok bool) {
	if err := w.startDrivers(true); err != nil {
		fmt.Fprintln(w.out, err)
		return false
	}
	ok = true
	for i, o := range observations {
		s := &env{world: w, kind: kinds[0], name: fmt.Sprintf("%s-%d", w.runID, i)}
		others := len(w.all)
		if err := s.run(o.run); err != nil {
			ok = false
			s.addFigure("FAIL: %v", err)
		}
		for _, d := range w.all[others:] {
			d.kill() // otherwise its watchdog continues
		}
		fmt.Fprintf(w.out, "%s\n    %s\n", o.name, strings.Join(s.figures, "\n    "))
		if w.ctx.Err() != nil {
			return false
		}
	}
	return ok
}

func (s *env) ofJava(watchdog time.Duration) *thread {
	return s.thread("observer", java, s.launch(java, false, watchdog))
}

func (s *env) ofGo(watchdog time.Duration) *thread {
	return s.thread("observer", golang, s.launch(golang, false, watchdog))
}

// gone describes when the lock's key expired while its holder did nothing.
func (s *env) gone(limit time.Duration) string {
	for began := time.Now(); time.Since(began) < limit; time.Sleep(10 * time.Millisecond) {
		if s.ttl() < 0 {
			return "was gone from Redis " + inMS(time.Since(began)) + " later"
		}
	}
	return fmt.Sprintf("was there after %v", limit)
}

var latch = regexp.MustCompile(`"(?i:px)" "(\d+)"`)

// unlockSent: the script is sent as EVALSHA or EVAL; it sets a key, which is deleted afterwards.
func unlockSent(s *env) {
	t := s.thread("observer", java, s.driver(java, long, 0))
	counts, ttls := map[string]int{}, map[string]int{}
	for range 10 {
		t.do("lock")
		for _, command := range s.monitored(func() { t.do("unlock") }) {
			if strings.Contains(command, " lua] ") { // called by the script
				if ttl := latch.FindStringSubmatch(command); ttl != nil && strings.Contains(command, "redisson_unlock_latch") {
					ttls[ttl[1]]++
				}
				continue
			}
			_, after, _ := strings.Cut(command, `] "`)
			name, _, _ := strings.Cut(after, `"`)
			counts[strings.ToUpper(name)]++
		}
	}
	for _, command := range slices.Sorted(maps.Keys(counts)) {
		s.addFigure("10 unlocks: %d × %s", counts[command], command)
	}
	s.addFigure("the TTLs of their latch keys, ms: %s", strings.Join(slices.Sorted(maps.Keys(ttls)), ", "))
}

// monitored returns the commands that Redis receives during a call and shortly afterwards.
func (s *env) monitored(call func()) (commands []string) {
	at, err := url.Parse(s.redis.url)
	try(err)
	connection, err := net.Dial("tcp", at.Host)
	try(err)
	defer connection.Close()
	try(connection.SetDeadline(time.Now().Add(timeout)))
	fmt.Fprint(connection, "MONITOR\r\n")
	lines := bufio.NewScanner(connection)
	lines.Scan() // +OK
	call()
	time.Sleep(50 * time.Millisecond)
	try(s.redis.Do(s.ctx, s.redis.B().Echo().Message("end").Build()).Error())
	for lines.Scan() && !strings.Contains(lines.Text(), "end") {
		commands = append(commands, lines.Text())
	}
	return commands
}

// renewalsSent: what the watchdog sends in 6 s, its TTL, while one lock is held.
func renewalsSent(s *env) {
	const watchdog, pairs = 2 * short, 1000
	for _, of := range []func(time.Duration) *thread{s.ofJava, s.ofGo} {
		t := of(watchdog)
		s.name += t.side.name
		t.do("rmw", "key="+s.name+":sum", fmt.Sprint("rounds=", pairs))
		t.do("lock")
		time.Sleep(watchdog / 3)
		before, _, _ := s.redis.load(s.ctx)
		time.Sleep(watchdog)
		after, _, _ := s.redis.load(s.ctx)
		s.addFigure("%s: %d scripts in %v", t.side.name, after-before, watchdog)
		t.driver.kill()
	}
}

// exceptions counts the exceptions that a driver has written to stderr.
func exceptions(d *driver) map[string]int {
	found := map[string]int{}
	for text := range strings.Lines(d.stderr.String()) {
		name, _, _ := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); strings.HasSuffix(name, "Exception") && !strings.Contains(name, " ") {
			found[name]++
		}
	}
	return found
}
