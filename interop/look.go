package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// What follows looks into Redis.

// at gives the server where a place is.
func (s *scene) at(p place) server {
	if s.kind.red {
		return s.reds[p.server]
	}
	return s.redis
}

// owner is who holds the lock, and how many times. On several servers, or of several
// members, it may take a moment until all say the same.
func (s *scene) owner() (owner, count string) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var owners, counts []string
		for _, p := range s.kind.places(s.name) {
			hash, err := s.at(p).Do(s.ctx, s.at(p).B().Hgetall().Key(p.name).Build()).AsStrMap()
			try(err)
			owner, count := p.holder(hash)
			owners, counts = append(owners, owner), append(counts, count)
		}
		if s.kind.red {
			// Two of three are a majority, whoever has the third, and however far that is
			// behind. Redisson has other owners on each.
			for i := range owners {
				for j := range i {
					if owners[i] == owners[j] && counts[i] == counts[j] {
						return owners[i], counts[i]
					}
				}
			}
		}
		owners, counts = slices.Compact(owners), slices.Compact(counts)
		if len(counts) == 1 || time.Since(began) > soon {
			return strings.Join(owners, " "), strings.Join(counts, " ")
		}
	}
}

// ttl is what is left of the lock's lease; of several the least, and of a RedLock what a
// majority has.
func (s *scene) ttl() time.Duration {
	var all []time.Duration
	for _, p := range s.kind.places(s.name) {
		all = append(all, s.at(p).ttl(s.ctx, p.name))
	}
	slices.Sort(all)
	if s.kind.red {
		return all[len(all)/2]
	}
	return all[0]
}

func (r server) ttl(ctx context.Context, key string) time.Duration {
	n, err := r.Do(ctx, r.B().Pttl().Key(key).Build()).AsInt64()
	try(err)
	return milliseconds(int(n))
}

func (r server) keys(ctx context.Context, pattern string) (keys []string) {
	for _, node := range r.Nodes() {
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
			try(err)
			keys, cursor = append(keys, page.Elements...), page.Cursor
		}
	}
	return keys
}

// cluster reports whether this is one. Its messages are those of shards.
func (r server) cluster() bool { return r.Mode() == rueidis.ClientModeCluster }

// channels are those of a pattern to which somebody listens.
func (r server) channels(ctx context.Context, pattern string) (channels []string) {
	for _, node := range r.Nodes() {
		commands := rueidis.Commands{node.B().PubsubChannels().Pattern(pattern).Build()}
		if r.cluster() {
			commands = append(commands, node.B().PubsubShardchannels().Pattern(pattern).Build())
		}
		for _, result := range node.DoMulti(ctx, commands...) {
			some, err := result.AsStrSlice()
			try(err)
			channels = append(channels, some...)
		}
	}
	return channels
}

// info is what a server says of itself.
func (r server) info(ctx context.Context, section string) map[string]string {
	all, err := r.Do(ctx, r.B().Info().Section(section).Build()).ToString()
	try(err)
	fields := map[string]string{}
	for text := range strings.Lines(all) {
		if name, value, ok := strings.Cut(strings.TrimSpace(text), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func (r server) uptime(ctx context.Context) time.Duration {
	seconds, err := strconv.Atoi(r.info(ctx, "server")["uptime_in_seconds"])
	try(err)
	return time.Duration(seconds) * time.Second
}

// load is what a server has done so far: scripts, commands with those that scripts have
// called, and the CPU's time.
func (r server) load(ctx context.Context) (scripts, commands int, cpu time.Duration) {
	for name, value := range r.info(ctx, "commandstats") {
		if !strings.HasPrefix(name, "cmdstat_") {
			continue // the heading
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		calls, err := strconv.Atoi(number)
		try(err)
		commands += calls
		if name == "cmdstat_eval" || name == "cmdstat_evalsha" {
			scripts += calls
		}
	}
	for name, value := range r.info(ctx, "cpu") {
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			try(err)
			cpu += time.Duration(seconds * float64(time.Second))
		}
	}
	return scripts, commands, cpu
}

// listeners is how many listen on channels.
func (r server) listeners(ctx context.Context, channels ...string) (all int) {
	if len(channels) == 0 {
		return 0
	}
	ask := r.B().PubsubNumsub().Channel(channels...).Build()
	if r.cluster() {
		ask = r.B().PubsubShardnumsub().Channel(channels...).Build()
	}
	counts, err := r.Do(ctx, ask).ToArray()
	try(err)
	for i := 1; i < len(counts); i += 2 {
		n, err := counts[i].AsInt64()
		try(err)
		all += int(n)
	}
	return all
}

// number reads a key that the drivers count in; remove deletes it.
func (s *scene) number(key string) int {
	n, err := s.counters().Do(s.ctx, s.counters().B().Get().Key(key).Build()).AsInt64()
	if !rueidis.IsRedisNil(err) {
		try(err)
	}
	return int(n)
}

func (s *scene) remove(key string) {
	_ = s.counters().Do(s.ctx, s.counters().B().Del().Key(key).Build()).Error() // leftovers would notice
}

// counters is where the drivers count.
func (s *scene) counters() server {
	if s.kind.red {
		return s.reds[0]
	}
	return s.redis
}

// listening is how many clients listen for the lock's release, on the server where they
// are most; of a fair lock, how many are in its queue and listen.
func (s *scene) listening() (most int) {
	for _, p := range s.kind.places(s.name) {
		channels := []string{p.channel()}
		if p.kind == fair.kind {
			queue, err := s.at(p).Do(s.ctx, s.at(p).B().Lrange().Key(prefixed("redisson_lock_queue", p.name)).Start(0).Stop(-1).Build()).AsStrSlice()
			try(err)
			channels = nil
			for _, owner := range queue {
				channels = append(channels, p.channel()+":"+owner)
			}
		}
		most = max(most, s.at(p).listeners(s.ctx, channels...))
	}
	return most
}

// untilQueued waits until so many are in the queue of a fair lock. A process of ours
// listens for the first of its waiters only.
func (s *scene) untilQueued(waiters int64) {
	key := prefixed("redisson_lock_queue", s.name)
	s.until(fmt.Sprintf("%d are in %s", waiters, key), func() bool {
		n, err := s.redis.Do(s.ctx, s.redis.B().Llen().Key(key).Build()).AsInt64()
		try(err)
		return n == waiters
	})
}

// untilListening waits until so many clients listen for the lock's release.
func (s *scene) untilListening(clients int) {
	s.until(fmt.Sprintf("%d clients listen for the release of %q", clients, s.name), func() bool { return s.listening() == clients })
}

// untilWaiting waits until one client waits for the lock's release.
func (s *scene) untilWaiting() {
	s.untilListening(1)
	// It tries once more, and only then only a message helps.
	if s.misses() {
		time.Sleep(100 * time.Millisecond)
	} else {
		time.Sleep(5 * time.Millisecond)
	}
}

// misses reports whether a message of a release may be lost on the waiter: Redisson's, if it
// waits for a writer. When the message comes just after it has tried and just before it
// sleeps, it sleeps until the TTL that it was told is over.
func (s *scene) misses() bool { return s.waiting == java && s.kind.held.writes() }

func (w *world) until(what string, met func() bool) {
	for began := time.Now(); !met(); time.Sleep(time.Millisecond) {
		check(time.Since(began) < patience, "not within %v: %s", patience, what)
		try(context.Cause(w.ctx))
	}
}
