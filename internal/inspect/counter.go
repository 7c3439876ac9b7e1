package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Kinds of synchronizers, as far as the data in Redis shows them.
const (
	KindExpirableSemaphore = "expirable_semaphore"
	KindSemaphore          = "semaphore"
	KindLatch              = "latch"
	// KindCounter is any of these kinds: without waiters and taken permits they look the same.
	KindCounter = "semaphore, expirable_semaphore, or latch"
	// kindUnset is a semaphore or an expirable semaphore, with waiters but without a number.
	kindUnset = "semaphore, or expirable_semaphore"
)

// NoKey is the TTL if there is no key, as in Redis.
const NoKey = -2

// Unset is the problem that no number of permits is set although they are in use.
const Unset = "no number of permits is set: it never was, or Redis has lost it"

// Counter is the data in Redis of a semaphore, an expirable semaphore, or a latch.
type Counter struct {
	Name string `json:"name"`
	// NameBytes is the name if it is not UTF-8, which JSON cannot express; nil if it is.
	NameBytes []byte `json:"name_base64,omitempty"`
	Kind      string `json:"kind"`
	// Count is the number of free permits, or of the remaining count-downs of a latch. It is unknown if Redis has no
	// number, or an invalid number.
	Count Number `json:"count"`
	// Problem says why Count is unknown.
	Problem string `json:"problem,omitempty"`
	// TTL is in ms; -1 for a key that never expires, and NoKey if there is none.
	TTL int64 `json:"ttl"`
	// Waiters is the number of subscribed clients.
	Waiters Number `json:"waiters"`
	// Taken is the number of taken permits of an expirable semaphore. A permit whose lease has ended is free.
	Taken int64 `json:"taken,omitempty"`
	// Permits are the taken permits that end first.
	Permits []Permit `json:"permits,omitempty"`
}

// Permit is a taken permit.
type Permit struct {
	// ID is the id that Permit.ID and Redisson's acquire return.
	ID string `json:"id"`
	// Left is the rest of its lease in ms; -1 if it never ends.
	Left int64 `json:"left"`
	// Process is the holder; nil if it is not known, as for Redisson and for Systems without a record.
	Process *Process `json:"process,omitempty"`
	// Note is the note of the holder, from the record of its process.
	Note string `json:"note,omitempty"`
}

const (
	// MaxPermits bounds the permits of a name that are read.
	MaxPermits = 1000
	// idBytes is the length of the id of a permit.
	idBytes = 16
	// never is Redisson's expiry time of permits without a lease, in epoch ms.
	never = 922337203685477
)

// ErrRights: the user may not run a command that semaphores, permits and latches need, on any key.
var ErrRights = errors.New("the user lacks a right of those that semaphores, permits and latches need: " +
	"+getrange +pttl +zrange +exists +time +zcount +pubsub|channels, and in a cluster +pubsub|shardnumsub +pubsub|shardchannels")

// lacksCommand reports whether the user may not run a command, on any key.
func lacksCommand(err error) bool {
	reply, refused := rueidis.IsRedisErr(err)
	return refused && refusal.LacksCommand(reply.Error())
}

// classify classifies an error of the client.
func classify(err error) error {
	if lacksCommand(err) {
		return fmt.Errorf("%w (%w)", ErrRights, err)
	}
	return redisio.Classify(err)
}

// Counter reads the semaphore, the expirable semaphore or the latch of a name, with the taken permits that end
// first. It returns nil if Redis has nothing or something else under the name.
func (in Inspector) Counter(ctx context.Context, name string) (*Counter, error) {
	keys := []string{in.Prefix + name}
	all, err := in.counters(ctx, keys, true)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	c := &all[0]
	return c, in.identifyPermits(ctx, c)
}

// counters reads the synchronizers with these keys. If the keys are named, the result has the first permits, and a
// problem if the permits belong to another application. Otherwise data of other applications, and unreadable data, is
// left out.
func (in Inspector) counters(ctx context.Context, keys []string, named bool) (all []Counter, err error) {
	clock, err := in.Client.Do(ctx, in.Client.B().Time().Build()).AsIntSlice()
	if err != nil {
		return nil, classify(err)
	}
	now := clock[0]*1000 + clock[1]/1000
	until, after := strconv.FormatInt(now, 10), "("+strconv.FormatInt(now, 10)
	var commands []rueidis.Completed
	var channels []string
	for _, key := range keys {
		taken := keyspace.Taken(key)
		commands = append(commands,
			in.Command("GETRANGE", key, "0", longestNumber), in.Command("PTTL", key), in.Command("EXISTS", keyspace.Counted(key)),
			in.Command("ZCOUNT", taken, "0", until), in.Command("ZCOUNT", taken, after, "+inf"))
		channels = append(channels, keyspace.PermitsChannel(key), keyspace.LatchChannel(key))
	}
	results, listeners := in.all(ctx, commands), in.Listeners(ctx, channels)
	var numbers []string
	for i, key := range keys {
		if mayBeNumber(results[5*i:]) {
			numbers = append(numbers, key)
		}
	}
	ranges := firstMembers
	if named {
		ranges = append(slices.Clip(ranges), []string{after, "+inf", "BYSCORE", "LIMIT", "0", strconv.Itoa(MaxPermits)})
	}
	taken := in.readTaken(ctx, numbers, ranges)
	for i, key := range keys {
		c := Counter{Name: strings.TrimPrefix(key, in.Prefix), Kind: KindCounter}
		c.NameBytes = notText(c.Name)
		waits, waitsForLatch := listeners[channels[2*i]], listeners[channels[2*i+1]]
		members, foreign := taken[key], errors.Is(taken[key].err, errForeign)
		if foreign && !named {
			continue
		}
		is, err := c.read(results[5*i:5*i+5], waits, waitsForLatch, foreign)
		if err == nil && !foreign {
			err = members.err
		}
		if _, refused := rueidis.IsRedisErr(err); refused && !named && !lacksCommand(err) {
			in.unread(key, err)
			continue // a derived key belongs to another application, or the user may not read it
		}
		if err != nil {
			return all, classify(err)
		}
		if !is {
			continue
		}
		if named {
			c.Permits = permitsOf(members.scores, now)
		}
		all = append(all, c)
	}
	return all, ctx.Err()
}

// mayBeNumber reports, from the replies about a key, whether it is a number or missing.
func mayBeNumber(got []rueidis.RedisResult) bool {
	text, err := got[0].ToString()
	ttl, failed := got[1].AsInt64()
	return err == nil && failed == nil && (ttl == NoKey || looksLikeNumber.MatchString(text))
}

// read converts the replies about one key. It reports whether the key is a number, or should be one, because it is
// missing but permits are taken or a client is subscribed. foreign reports that the set of taken permits belongs to
// another application.
func (c *Counter) read(got []rueidis.RedisResult, waits, waitsForLatch Number, foreign bool) (is bool, err error) {
	text, err := got[0].ToString()
	if reply, refused := rueidis.IsRedisErr(err); refused && refusal.WrongType(reply.Error()) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	ttl, err := got[1].AsInt64()
	unset := ttl == NoKey
	if err == nil && !unset && !looksLikeNumber.MatchString(text) {
		return false, nil
	}
	var numbers [4]int64
	for j := range numbers {
		if numbers[j], err = got[j+1].AsInt64(); err != nil {
			return false, err
		}
	}
	if foreign {
		numbers[2], numbers[3] = 0, 0
	}
	expired := numbers[2] // Redisson and Lockkeeper free them at the next acquire
	c.TTL, c.Taken, c.Waiters = numbers[0], numbers[3], waits.plus(waitsForLatch)
	limit := int64(maxPermits)
	switch {
	case expired+c.Taken > 0:
		c.Kind = KindExpirableSemaphore
	case unset && waits.N > 0:
		c.Kind = kindUnset
	case unset:
		return false, nil
	case numbers[1] > 0 || waitsForLatch.N > 0:
		c.Kind, limit = KindLatch, maxExact
	case waits.N > 0:
		c.Kind = KindSemaphore
	default:
		limit = maxExact // the key may be a latch
	}
	if unset {
		c.Problem = Unset
	} else {
		c.Count, c.Problem = exact("the count", text, limit)
		c.Count = c.Count.plus(Known(expired))
	}
	if foreign && c.Problem != "" {
		c.Problem += "; "
	}
	if foreign {
		c.Problem += errForeign.Error()
	}
	return true, nil
}

// identifyPermits finds the processes that hold the permits, since the id of a permit begins with the id of its System.
func (in Inspector) identifyPermits(ctx context.Context, c *Counter) error {
	views := []Lock{{Name: c.Name, Owners: make([]Owner, len(c.Permits))}}
	for i, p := range c.Permits {
		views[0].Owners[i].Field = keyspace.PermitSystemOf(p.ID) + ":" + protocol.OfPermit(p.ID)
	}
	err := in.Identify(ctx, views)
	for i, o := range views[0].Owners {
		if o.Process.Since != nil {
			c.Permits[i].Process, c.Permits[i].Note = &o.Process, o.Note
		}
	}
	return err
}
