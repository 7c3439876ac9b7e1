package look

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Kinds of what is no lock, told by what is in Redis.
const (
	KindPermits   = "permits that expire"
	KindSemaphore = "semaphore"
	KindLatch     = "latch"
	// KindCounter is one of them that nobody waits for and that has no permit taken: they look the same.
	KindCounter = "semaphore, permits that expire, or latch"
)

// Counter is a semaphore, permits that expire, or a latch, as Redis has it.
type Counter struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Count is how many permits are free, or how many count-downs a latch misses.
	Count int64 `json:"count"`
	// TTL is in ms; -1 for a key that never expires.
	TTL int64 `json:"ttl"`
	// Waiters is how many clients listen.
	Waiters int64 `json:"waiters"`
	// Taken is how many permits that expire are taken, and Permits are the first of them to end. A
	// permit whose lease is over is free.
	Taken   int64    `json:"taken,omitempty"`
	Permits []Permit `json:"permits,omitempty"`
}

// Permit is a permit that is taken. Redis does not know by whom: its id is random.
type Permit struct {
	// ID is what Permit.ID and Redisson's acquire return.
	ID string `json:"id"`
	// Left is the rest of its lease in ms; -1 if it never ends.
	Left int64 `json:"left"`
}

// never is when permits without an end expire, as Redisson writes it: in epoch ms.
const never = 922337203685477

// Counter reads the semaphore, the permits that expire or the latch of a name; nil if in Redis there is
// something else, or nothing.
func (l Looker) Counter(ctx context.Context, name string) *Counter {
	key := l.Prefix + name
	channels := []string{redisio.PermitsChannel(key), redisio.LatchChannel(key)}
	got := l.all(ctx, []rueidis.Completed{
		l.Command("GET", key), l.Command("PTTL", key), l.Command("EXISTS", redisio.Counted(key)),
		l.Command("ZRANGE", redisio.Taken(key), "0", "-1", "WITHSCORES"), l.Client.B().Time().Build(),
	})
	text, _ := got[0].ToString()
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	c := &Counter{Name: name, Kind: KindCounter, Count: count}
	c.TTL, _ = got[1].AsInt64()
	listeners := l.listeners(ctx, channels)
	counted, _ := got[2].AsInt64()
	taken, _ := got[3].AsZScores()
	switch {
	case len(taken) > 0:
		c.Kind = KindPermits
	case counted > 0 || listeners[channels[1]] > 0:
		c.Kind = KindLatch
	case listeners[channels[0]] > 0:
		c.Kind = KindSemaphore
	}
	c.Waiters = listeners[channels[0]] + listeners[channels[1]]
	clock, err := got[4].AsIntSlice()
	if err != nil || len(clock) != 2 {
		return c // without a clock it is not known which permits are taken
	}
	now := clock[0]*1000 + clock[1]/1000
	for _, p := range taken {
		left := int64(p.Score) - now
		if left <= 0 {
			c.Count++ // Redisson and Lockkeeper make it free when they take one
			continue
		}
		if int64(p.Score) >= never {
			left = -1
		}
		if c.Taken++; len(c.Permits) < mostOwners {
			c.Permits = append(c.Permits, Permit{hex.EncodeToString([]byte(p.Member)), left})
		}
	}
	return c
}
