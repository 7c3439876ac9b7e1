package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// failing runs last, with Sentinels: afterwards another server is the master.
var failing = testcase{"a planned failover", true, only(fenced), failover}

// takeover bounds the time until Go uses the new master, on a busy machine. Sentinels poll once a second.
const takeover = 5 * time.Second

// failover: Java and Go contend for six locks while the Sentinels make a replica the master, until the old master
// is a replica. No two holds of a lock are trusted at the same time, and tokens grow. Java trusts a lock until it
// unlocks, and Go as long as its hold is valid.
func failover(s *env) {
	c := &contention{refused: map[string]int{}}
	clients := map[side]*driver{java: s.driver(java, short, 0), golang: s.driver(golang, short, 0)}
	id := s.thread("hello", golang, clients[golang]).do("hello").values["client"]
	var running sync.WaitGroup
	for i := range 6 {
		for side, d := range clients {
			running.Go(func() { c.contend(s.thread(fmt.Sprint("contender", i), side, d), fmt.Sprint(s.name, "-", i)) })
		}
	}
	var promotion, subscribed time.Time
	err := s.run(func(s *env) {
		time.Sleep(2 * time.Second)
		try(s.sentinels.fail())
		var now *rig.Server
		s.until("a replica is the master", func() bool {
			now = s.sentinels.promoted()
			return now != nil
		})
		promotion = time.Now()
		s.until("Go listens on the new master", func() bool {
			count, err := now.Do("PUBSUB", "NUMSUB", keyspace.TurnChannel(id))
			return err == nil && count.Map()[keyspace.TurnChannel(id)] == "1"
		})
		subscribed = time.Now()
		s.until("the old master is a replica", func() bool { return s.sentinels.servers[0].Replication("role:slave") })
		s.addFigure("the old master was a replica %s after the new one took over", inMS(time.Since(promotion)))
		time.Sleep(2 * time.Second)
	})
	c.stopped.Store(true)
	running.Wait()
	try(err)
	c.judge(s, promotion, subscribed)
}

// contention is the contending threads and their holds.
type contention struct {
	stopped atomic.Bool

	mu      sync.Mutex // guards what follows
	holds   []trusted
	refused map[string]int // requests, by error text
	failed  error
}

// trusted is a hold, from its grant until its holder no longer trusted it.
type trusted struct {
	side          side
	granted, left time.Time
	lock          string
	token         int64
}

// contend acquires a lock again and again, and keeps it for 10 ms.
func (c *contention) contend(t *thread, lock string) {
	err := t.env.run(func(*env) {
		for !c.stopped.Load() {
			granted := t.begin("lock", "name="+lock).any()
			if granted.word != "ok" {
				c.refuse(granted)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			time.Sleep(10 * time.Millisecond)
			left, valid := time.Now(), true
			if t.side == golang {
				valid = t.do("heldbyme", "name="+lock).values["held"] == "true"
			}
			if valid {
				c.mu.Lock()
				c.holds = append(c.holds, trusted{t.side, granted.at(), left, lock, granted.number("token")})
				c.mu.Unlock()
			}
			if released := t.begin("unlock", "name="+lock).any(); released.word != "ok" {
				c.refuse(released)
			}
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = err
	}
}

func (c *contention) refuse(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message, _, _ := strings.Cut(a.values["message"], ".")
	c.refused[a.what[:strings.LastIndex(a.what, " ")]+": "+a.values["class"]+": "+message]++
}

// judge adds the figures, and checks them.
func (c *contention) judge(s *env, promotion, subscribed time.Time) {
	try(c.failed)
	slices.SortFunc(c.holds, func(a, b trusted) int { return a.granted.Compare(b.granted) })
	before, first, after := map[side]int{}, map[side]time.Duration{}, map[side]int{}
	last := map[string]trusted{}
	var doubles, fallen []string
	for _, h := range c.holds {
		since := h.granted.Sub(promotion)
		if since < 0 {
			before[h.side]++
		} else if after[h.side]++; after[h.side] == 1 {
			first[h.side] = since
		}
		l := last[h.lock]
		if h.granted.Before(l.left) {
			doubles = append(doubles, fmt.Sprintf("%s has %s %v after the promotion, and %s for %v more",
				h.side.name, h.lock, since, l.side.name, l.left.Sub(h.granted)))
		}
		if h.token <= l.token {
			fallen = append(fallen,
				fmt.Sprintf("%d of %s %v after the promotion, after %d of %s", h.token, h.side.name, since, l.token, l.side.name))
		}
		last[h.lock] = h
	}
	for _, side := range []side{java, golang} {
		s.addFigure("%s: %d holds before, %d after, the first after %s", side.name, before[side], after[side], inMS(first[side]))
	}
	s.addFigure("Go listens on the new master after %s", inMS(subscribed.Sub(promotion)))
	for _, what := range slices.Sorted(maps.Keys(c.refused)) {
		s.addFigure("%d × %s", c.refused[what], what)
	}
	check(len(doubles) == 0, "%d holds overlap: %q", len(doubles), doubles[:min(3, len(doubles))])
	check(len(fallen) == 0, "%d tokens have fallen: %q", len(fallen), fallen[:min(3, len(fallen))])
	check(after[java] > 0 && after[golang] > 0, "a side has no hold after the promotion")
	check(first[golang] < takeover && subscribed.Sub(promotion) < takeover, "Go was late to use the new master")
}
