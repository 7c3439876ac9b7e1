//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// lockView is a lock as Redis has it, whoever has written it.
type lockView struct {
	Name string `json:"name"`
	// Kind is plain, fenced, fair or read/write. What is held as a plain lock is called fenced if
	// it has a counter of tokens, and fair if it has a queue.
	Kind   string      `json:"kind"`
	Held   bool        `json:"held"`
	Owners []ownerView `json:"owners,omitempty"`
	// TTL is in ms; -1 for a key that never expires.
	TTL int64 `json:"ttl,omitempty"`
	// Waiters is how many clients listen for the release; of a fair lock, the length of its queue.
	Waiters int64 `json:"waiters"`
	// Token is the last that was drawn.
	Token int64 `json:"token,omitempty"`
	// Queue are those who wait in the order of their turns: owners in the queue of a fair lock,
	// clients in the line of another. Redisson's clients stand in no line.
	Queue []waiterView `json:"queue,omitempty"`
}

// waiterView is one who waits. Since is when it came, by the clock of Redis; nil if that is not
// known.
type waiterView struct {
	Field   string      `json:"field"`
	Since   *time.Time  `json:"since,omitempty"`
	Process processView `json:"process"`
}

// ownerView is one owner of a lock.
type ownerView struct {
	Field string `json:"field"`
	// Mode is read or write, of a read/write lock.
	Mode    string      `json:"mode,omitempty"`
	Count   int64       `json:"count"`
	Process processView `json:"process"`
}

const (
	// pageSize is how many keys one SCAN looks at, and how many of them are looked into at once.
	pageSize = 500
	// mostOwners bounds the owners of a lock that are shown, and the waiters.
	mostOwners = 32
)

const (
	kindReadWrite = "read/write"
	kindPlain     = "plain"
	kindFair      = "fair"
)

// looker reads locks by the commands of a client.
type looker struct {
	client rueidis.Client
	prefix string
}

func (l looker) command(words ...string) rueidis.Completed {
	b := l.client.B().Arbitrary(words[0])
	if len(words) > 1 {
		b = b.Keys(words[1]).Args(words[2:]...)
	}
	return b.Build()
}

// all runs commands in one pipeline.
func (l looker) all(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	if len(commands) == 0 {
		return nil
	}
	return l.client.DoMulti(ctx, commands...)
}

// look reads the locks with these keys. A key that is no lock is left out, unless it is named:
// then it is free if there is no such key, and may have owners of any form.
func (l looker) look(ctx context.Context, keys []string, named bool) (views []lockView, err error) {
	var commands []rueidis.Completed
	for _, key := range keys {
		commands = append(commands, l.command("HLEN", key),
			l.command("HRANDFIELD", key, strconv.Itoa(mostOwners+1), "WITHVALUES"), l.command("PTTL", key))
	}
	results := l.all(ctx, commands)
	for i, key := range keys {
		v := lockView{Name: strings.TrimPrefix(key, l.prefix), Kind: kindPlain}
		n, err := results[3*i].AsInt64()
		if err != nil {
			if _, refused := rueidis.IsRedisErr(err); refused && !named {
				continue // it is another type by now, or not ours to look at
			}
			return nil, fmt.Errorf("%q: %w", key, redisio.Sort(err))
		}
		fields, err := pairs(results[3*i+1])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, redisio.Sort(err))
		}
		if isLock := v.read(fields, n); !isLock && (!named || n > 0) {
			if named {
				return nil, fmt.Errorf("the key %q is a hash, but no lock", key)
			}
			continue
		}
		if v.TTL, err = results[3*i+2].AsInt64(); err != nil {
			return nil, redisio.Sort(err)
		}
		if v.TTL == -2 { // expired since
			v.Held, v.Owners, v.TTL = false, nil, 0
		}
		if named || v.Held {
			views = append(views, v)
		}
	}
	return views, l.lookBeside(ctx, views)
}

// pairs reads fields and values, in RESP2 or RESP3.
func pairs(result rueidis.RedisResult) (fields [][2]string, err error) {
	elements, err := result.ToArray()
	if err != nil {
		return nil, err
	}
	var flat []rueidis.RedisMessage
	for _, e := range elements {
		if pair, err := e.ToArray(); err == nil {
			flat = append(flat, pair...)
		} else {
			flat = append(flat, e)
		}
	}
	for i := 0; i+1 < len(flat); i += 2 {
		field, _ := flat[i].ToString()
		value, _ := flat[i+1].ToString()
		fields = append(fields, [2]string{field, value})
	}
	return fields, nil
}

// The forms of a client and of an owner.
const clientForm = `^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

var (
	clientID   = regexp.MustCompile(clientForm + `$`)
	ownerField = regexp.MustCompile(clientForm + `:\d+(:write)?$`)
)

// read takes the fields of a hash for owners, and reports whether they are.
func (v *lockView) read(fields [][2]string, n int64) bool {
	mode := ""
	for _, f := range fields {
		if f[0] == "mode" && (f[1] == "read" || f[1] == "write") {
			mode, v.Kind = f[1], kindReadWrite
		}
	}
	if n == 0 || n > 1 && mode == "" && n <= mostOwners {
		return false
	}
	for _, f := range fields {
		if mode != "" && f[0] == "mode" {
			continue
		}
		count, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || !ownerField.MatchString(f[0]) {
			return false
		}
		field, writes := strings.CutSuffix(f[0], ":write")
		owner := ownerView{Field: field, Count: count}
		if v.Kind == kindReadWrite {
			if owner.Mode = "read"; writes {
				owner.Mode = "write"
			}
		}
		v.Owners = append(v.Owners, owner)
	}
	slices.SortFunc(v.Owners, func(a, b ownerView) int {
		return cmp.Or(strings.Compare(b.Mode, a.Mode), strings.Compare(a.Field, b.Field))
	})
	v.Held = len(v.Owners) > 0
	return v.Held
}

// lookBeside reads what is beside the locks: tokens, queues, and who listens. What the user may
// not read is not shown.
func (l looker) lookBeside(ctx context.Context, views []lockView) error {
	if len(views) == 0 {
		return nil
	}
	var commands []rueidis.Completed
	channels := make([]string, len(views))
	for i, v := range views {
		key := l.prefix + v.Name
		if channels[i] = redisio.Channel(key); v.Kind == kindReadWrite {
			channels[i] = redisio.ReadWriteChannel(key)
		}
		commands = append(commands, l.command("GET", redisio.Token(key)), l.command("LLEN", redisio.Queue(key)),
			l.command("LRANGE", redisio.Queue(key), "0", strconv.Itoa(mostOwners-1)),
			l.command("HRANDFIELD", redisio.Line(key), strconv.Itoa(mostOwners), "WITHVALUES"))
	}
	results := l.all(ctx, commands)
	listeners := l.listeners(ctx, channels)
	for i := range views {
		v, got := &views[i], results[4*i:]
		v.Waiters = listeners[channels[i]]
		if fields, err := pairs(got[3]); err == nil {
			v.Queue = line(fields)
			v.Waiters = max(v.Waiters, int64(len(v.Queue)))
		}
		if v.Kind != kindPlain {
			continue
		}
		if token, err := got[0].AsInt64(); err == nil {
			v.Token, v.Kind = token, "fenced"
		}
		if n, err := got[1].AsInt64(); err == nil && n > 0 {
			v.Waiters, v.Kind, v.Queue = n, kindFair, nil
			owners, _ := got[2].AsStrSlice()
			for _, owner := range owners {
				v.Queue = append(v.Queue, waiterView{Field: owner})
			}
		}
	}
	return ctx.Err()
}

// listeners counts who listens to channels. In a cluster that is told of shard channels, by the servers
// of their slots, and of others by one server of those who are connected to it.
func (l looker) listeners(ctx context.Context, channels []string) map[string]int64 {
	all, _ := l.client.Do(ctx, l.client.B().PubsubNumsub().Channel(channels...).Build()).AsIntMap()
	if l.client.Mode() != rueidis.ClientModeCluster {
		return all
	}
	if all == nil {
		all = map[string]int64{}
	}
	var commands []rueidis.Completed
	for _, channel := range channels {
		commands = append(commands, l.client.B().PubsubShardnumsub().Channel(channel).Build())
	}
	for _, result := range l.all(ctx, commands) {
		counts, _ := result.AsIntMap()
		for channel, n := range counts {
			all[channel] += n
		}
	}
	return all
}

// line reads the line of a lock; see scripts/line.lua.
func line(fields [][2]string) (waiters []waiterView) {
	for _, f := range fields {
		arrived, _, _ := strings.Cut(f[1], " ")
		micros, err := strconv.ParseInt(arrived, 10, 64)
		if err == nil && clientID.MatchString(f[0]) {
			since := time.UnixMicro(micros)
			waiters = append(waiters, waiterView{Field: f[0], Since: &since})
		}
	}
	slices.SortFunc(waiters, func(a, b waiterView) int { return cmp.Or(a.Since.Compare(*b.Since), strings.Compare(a.Field, b.Field)) })
	return waiters
}

// scan calls page with the keys of each SCAN that match the pattern, on every master.
func (l looker) scan(ctx context.Context, pattern, kind string, page func(keys []string) error) error {
	for _, node := range l.client.Nodes() {
		for cursor := uint64(0); ; {
			entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(pageSize).Type(kind).Build()).AsScanEntry()
			if err != nil {
				return fmt.Errorf("SCAN: %w", redisio.Sort(err))
			}
			if err := page(entry.Elements); err != nil {
				return err
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// list reads all locks whose names match, sorted by name.
func (l looker) list(ctx context.Context, pattern string) ([]lockView, error) {
	var all []lockView
	seen := map[string]bool{} // SCAN may return a key twice
	err := l.scan(ctx, quotePattern(l.prefix)+pattern, "hash", func(keys []string) error {
		keys = slices.DeleteFunc(keys, func(key string) bool { return seen[key] })
		views, err := l.look(ctx, keys, false)
		for _, v := range views {
			seen[l.prefix+v.Name] = true
		}
		all = append(all, views...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b lockView) int { return strings.Compare(a.Name, b.Name) })
	return all, l.identify(ctx, all)
}

// quotePattern takes a text literally in a pattern of SCAN.
func quotePattern(text string) string {
	return regexp.MustCompile(`[*?\[\]\\^]`).ReplaceAllString(text, `\$0`)
}

// ttl is a TTL for people.
func ttl(ms int64) string {
	if ms < 0 {
		return "never"
	}
	d := time.Duration(ms) * time.Millisecond
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
