package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// failing is played last, where there are Sentinels: another server is the master afterwards.
var failing = act{"a planned failover", true, only(fenced), failover}

// takeover is how late Go may have its locks on the new master, on a busy machine. Sentinels look once a second.
const takeover = 5 * time.Second

// failover: Java and Go contend for six locks while the Sentinels make a replica the master, and until they
// have made a replica of the old one. Nobody trusts a lock that another trusts, and tokens grow. Java trusts a
// lock until it asks to unlock it, and Go as long as its hold is valid.
func failover(s *scene) {
	c := &contention{refused: map[string]int{}}
	clients := map[side]*driver{java: s.driver(java, short, 0), golang: s.driver(golang, short, 0)}
	id := s.thread("hello", golang, clients[golang]).do("hello").values["client"]
	var playing sync.WaitGroup
	for i := range 6 {
		for side, d := range clients {
			playing.Go(func() { c.contend(s.thread(fmt.Sprint("contender", i), side, d), fmt.Sprint(s.name, "-", i)) })
		}
	}
	var promotion, subscribed time.Time
	err := s.play(func(s *scene) {
		time.Sleep(2 * time.Second)
		try(s.guarded.fail(s.ctx))
		var now rueidis.Client
		s.until("a replica is the master", func() bool {
			now = s.guarded.promoted(s.ctx)
			return now != nil
		})
		promotion = time.Now()
		s.until("Go listens on the new master", func() bool { return server{Client: now}.listeners(s.ctx, redisio.TurnChannel(id)) == 1 })
		subscribed = time.Now()
		s.until("the old master is a replica", func() bool { return role(s.ctx, s.guarded.servers[0]) == "slave" })
		s.tell("the old master was a replica %s after the new one took over", inMS(time.Since(promotion)))
		time.Sleep(2 * time.Second)
	})
	c.stopped.Store(true)
	playing.Wait()
	try(err)
	c.judge(s, promotion, subscribed)
}

// contention is who contends, and what came of it.
type contention struct {
	stopped atomic.Bool

	mu      sync.Mutex // guards what follows
	holds   []trusted
	refused map[string]int // requests, by what was said
	failed  error
}

// trusted is a hold from its grant until its holder trusted it no longer.
type trusted struct {
	had
	lock  string
	token int64
}

// contend takes a lock again and again, and keeps it for 10 ms.
func (c *contention) contend(t *thread, lock string) {
	err := t.scene.play(func(*scene) {
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
				c.holds = append(c.holds, trusted{had{t.side, t.side.name, granted.began(), granted.at(), left}, lock, granted.number("token")})
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
	said, _, _ := strings.Cut(a.values["message"], ".")
	c.refused[a.what[:strings.LastIndex(a.what, " ")]+": "+a.values["class"]+": "+said]++
}

// judge tells what there was, and checks it.
func (c *contention) judge(s *scene, promotion, subscribed time.Time) {
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
			doubles = append(doubles, fmt.Sprintf("%s has %s %v after the promotion, and %s for %v more", h.name, h.lock, since, l.name, l.left.Sub(h.granted)))
		}
		if h.token <= l.token {
			fallen = append(fallen, fmt.Sprintf("%d of %s %v after the promotion, after %d of %s", h.token, h.name, since, l.token, l.name))
		}
		last[h.lock] = h
	}
	for _, side := range []side{java, golang} {
		s.tell("%s: %d holds before, %d after, the first after %s", side.name, before[side], after[side], inMS(first[side]))
	}
	s.tell("Go listens on the new master after %s", inMS(subscribed.Sub(promotion)))
	for _, what := range slices.Sorted(maps.Keys(c.refused)) {
		s.tell("%d × %s", c.refused[what], what)
	}
	check(len(doubles) == 0, "%d holds are trusted by two: %q", len(doubles), doubles[:min(3, len(doubles))])
	check(len(fallen) == 0, "%d tokens have fallen: %q", len(fallen), fallen[:min(3, len(fallen))])
	check(after[java] > 0 && after[golang] > 0, "not both go on")
	check(first[golang] < takeover && subscribed.Sub(promotion) < takeover, "Go came late to the new master")
}
