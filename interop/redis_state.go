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

// The functions of this file read state in Redis.

// serverOf is the server of a part.
func (s *env) serverOf(p part) server {
	if s.kind.red {
		return s.reds[p.server]
	}
	return s.redis
}

// owner returns the lock's owner and hold count. It waits a moment until all servers and members
// agree.
func (s *env) owner() (owner, count string) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var owners, counts []string
		for _, p := range s.kind.parts(s.name) {
			hash, err := s.serverOf(p).Do(s.ctx, s.serverOf(p).B().Hgetall().Key(p.name).Build()).AsStrMap()
			try(err)
			owner, count := p.holder(hash)
			owners, counts = append(owners, owner), append(counts, count)
		}
		if s.kind.red {
			// Two of three are a majority, with any owner on the third. Redisson has a different
			// owner on each.
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

// ttl is the rest of the lock's lease: the shortest of several members, and for a RedLock that
// of a majority.
func (s *env) ttl() time.Duration {
	var all []time.Duration
	for _, p := range s.kind.parts(s.name) {
		all = append(all, s.serverOf(p).ttl(s.ctx, p.name))
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

// cluster reports whether the server is a cluster, where locks use sharded Pub/Sub.
func (r server) cluster() bool { return r.Mode() == rueidis.ClientModeCluster }

// channels are the channels of a pattern with subscribers.
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

// info is a section of the server's INFO.
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

// listeners is the number of subscribers of channels.
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
func (s *env) number(key string) int {
	n, err := s.counters().Do(s.ctx, s.counters().B().Get().Key(key).Build()).AsInt64()
	if !rueidis.IsRedisNil(err) {
		try(err)
	}
	return int(n)
}

func (s *env) remove(key string) {
	_ = s.counters().Do(s.ctx, s.counters().B().Del().Key(key).Build()).Error() // leftovers would detect it
}

// counters is the server of the keys that the drivers count in.
func (s *env) counters() server {
	if s.kind.red {
		return s.reds[0]
	}
	return s.redis
}

// listening is how many clients listen for the lock's release, on the server with the most; for a
// fair lock, how many listen of those in its queue.
func (s *env) listening() (most int) {
	for _, p := range s.kind.parts(s.name) {
		channels := []string{p.channel()}
		if p.kind == fair.kind {
			queue, err := s.serverOf(p).Do(s.ctx,
				s.serverOf(p).B().Lrange().Key(prefixed("redisson_lock_queue", p.name)).Start(0).Stop(-1).Build()).AsStrSlice()
			try(err)
			channels = nil
			for _, owner := range queue {
				channels = append(channels, p.channel()+":"+owner)
			}
		}
		most = max(most, s.serverOf(p).listeners(s.ctx, channels...))
	}
	return most
}

// untilQueued waits until that many are in the queue of a fair lock. A process of Lockkeeper
// listens only for the first of its waiters.
func (s *env) untilQueued(waiters int64) {
	key := prefixed("redisson_lock_queue", s.name)
	s.until(fmt.Sprintf("%d waiters are in %s", waiters, key), func() bool {
		n, err := s.redis.Do(s.ctx, s.redis.B().Llen().Key(key).Build()).AsInt64()
		try(err)
		return n == waiters
	})
}

// untilListening waits until that many clients listen for the lock's release.
func (s *env) untilListening(clients int) {
	s.until(fmt.Sprintf("%d clients listen for the release of %q", clients, s.name), func() bool { return s.listening() == clients })
}

// untilWaiting waits until one client waits for the lock's release.
func (s *env) untilWaiting() {
	s.untilListening(1)
	// It tries once more; after that only a message wakes it.
	if s.misses() {
		time.Sleep(100 * time.Millisecond)
	} else {
		time.Sleep(5 * time.Millisecond)
	}
}

// misses reports whether the waiter may miss the message of a release, as Redisson may if it waits
// for a writer. If the message comes between its try and its sleep, it sleeps for the TTL that
// the try returned.
func (s *env) misses() bool { return s.waiting == java && s.kind.held.writes() }

func (w *world) until(what string, met func() bool) {
	for began := time.Now(); !met(); time.Sleep(time.Millisecond) {
		check(time.Since(began) < timeout, "not within %v: %s", timeout, what)
		try(context.Cause(w.ctx))
	}
}
