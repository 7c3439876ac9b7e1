// Package inspect reads lock state directly from Redis, including locks taken by Redisson, for tools that run without
// a System. It never writes.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Lock is the state of a lock in Redis, written by any client.
type Lock struct {
	Name string `json:"name"`
	// NameBytes is the name if it is not UTF-8, which JSON cannot express; nil if it is.
	NameBytes []byte `json:"name_base64,omitempty"`
	// Kind is plain, fenced, fair or read_write. The hashes of plain, fenced and fair locks look the same: a lock with
	// a counter of tokens is fenced, and a lock with a queue is fair.
	Kind   string  `json:"kind"`
	Held   bool    `json:"held"`
	Owners []Owner `json:"owners,omitempty"`
	// MoreOwners is the number of owners that are left out.
	MoreOwners int64 `json:"more_owners,omitempty"`
	// TTL is in ms; -1 for a key that never expires.
	TTL int64 `json:"ttl,omitempty"`
	// Waiters is the number of clients subscribed to the channel of the release; for a fair lock, the length of its
	// queue. It does not include requests that wait in the process of an owner, unless the lock is fair; see Owner.
	Waiters Number `json:"waiters"`
	// Token is the last token that was drawn.
	Token int64 `json:"token,omitempty"`
	// Queue are the waiters in the order of their turns: owners in the queue of a fair lock, clients in the wait
	// queue of another lock. Redisson's clients do not use the wait queue.
	Queue []Waiter `json:"queue,omitempty"`
	// Problems describe invalid data in Redis.
	Problems []string `json:"problems,omitempty"`
}

// Waiter is an entry of a queue.
type Waiter struct {
	Field string `json:"field"`
	// Waiting is the time in ms for which the waiter has waited, by the clock of Redis; unknown in the queue of a fair
	// lock.
	Waiting Number  `json:"waiting"`
	Process Process `json:"process"`
}

// Owner is one owner of a lock.
type Owner struct {
	Field string `json:"field"`
	// Mode is read or write, for a read/write lock.
	Mode  string `json:"mode,omitempty"`
	Count Number `json:"count"`
	// HeldAtLeast is the minimum time for which the owner has held the lock, in ms. It comes from the record of the
	// process, which may be some seconds old; see Process.Seen.
	HeldAtLeast Number `json:"held_at_least"`
	// Waiters is the number of requests for the lock that waited in the process of the owner, from the same record.
	Waiters Number `json:"waiters"`
	// Note is the note of the owner about its hold, from the same record.
	Note    string  `json:"note,omitempty"`
	Process Process `json:"process"`
}

// Outlasted reports whether the hold has ended, and its minimum time keeps the lock: then a 0 precedes the number in
// the field.
func (o Owner) Outlasted() bool {
	_, number, _ := strings.Cut(o.Field, ":")
	return len(number) > 1 && number[0] == '0'
}

const (
	// PageSize is the COUNT of SCAN, and the number of keys that are read in one pipeline.
	PageSize = 500
	// maxOwners bounds the owners of a lock that are shown, and the waiters.
	maxOwners = 32
)

// Kinds of locks, as far as the data in Redis shows them: the words of kinds.Words.
const (
	KindReadWrite = "read_write"
	KindPlain     = "plain"
	KindFenced    = "fenced"
	KindFair      = "fair"
)

// Inspector reads locks with the commands of a client. The names of locks are without the prefix.
type Inspector struct {
	Client rueidis.Client
	Prefix string
	// Unread, if it is not nil, gets each key that List and Counters leave out since Redis refuses to read it: the user
	// may not read the key, or the key has another type.
	Unread func(key string, err error)
}

// unread reports a key to Unread if Redis has refused to read it.
func (in Inspector) unread(key string, err error) {
	if _, refused := rueidis.IsRedisErr(err); refused && in.Unread != nil {
		in.Unread(key, redisio.Classify(err))
	}
}

// Command returns a command whose second word is a key.
func (in Inspector) Command(words ...string) rueidis.Completed {
	b := in.Client.B().Arbitrary(words[0])
	if len(words) > 1 {
		b = b.Keys(words[1]).Args(words[2:]...)
	}
	return b.Build()
}

// all runs commands in one pipeline.
func (in Inspector) all(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	if len(commands) == 0 {
		return nil
	}
	return in.Client.DoMulti(ctx, commands...)
}

// Inspect reads the locks with these keys. Keys that are not locks are left out, unless named is set: then a missing
// key is a free lock, and another key is an error. If some of several named keys cannot be read because a server of a
// cluster does not answer, the other keys are returned with the error.
func (in Inspector) Inspect(ctx context.Context, keys []string, named bool) (views []Lock, err error) {
	for read := 1; len(keys) > 0; read++ {
		more, changed, failed := in.inspect(ctx, keys, named, read == maxReads)
		views, keys, err = append(views, more...), changed, cmp.Or(err, failed)
	}
	return views, err
}

// maxReads bounds the times that a key is read if it changes between two steps of the read.
const maxReads = 10

var errChanged = errors.New("the lock has changed while it was read")

// inspect reads the locks once, and returns the keys of the locks that have changed meanwhile. If last is set, it shows
// such locks with the names of their owners alone.
func (in Inspector) inspect(ctx context.Context, keys []string, named, last bool) (views []Lock, changed []string, err error) {
	var commands []rueidis.Completed
	for _, key := range keys {
		commands = append(commands, in.Command("HLEN", key), in.Command("HRANDFIELD", key, strconv.Itoa(maxOwners+1)), in.Command("PTTL", key))
	}
	results := in.all(ctx, commands)
	hashes := make([]*hash, len(keys))
	for i, key := range keys {
		hashes[i] = &hash{key: key}
		var names []string
		if names, hashes[i].err = results[3*i+1].AsStrSlice(); !mayBeLock(names) {
			n, _ := results[3*i].AsInt64()
			hashes[i].changed = n > 0 && len(names) == 0
			continue
		}
		if len(names) > maxOwners && !slices.Contains(names, "mode") {
			names[maxOwners] = "mode" // HRANDFIELD may have left it out
		}
		hashes[i].names = names
	}
	in.readShort(ctx, hashes, longestCount)
	var missing error
	for i, key := range keys {
		v := Lock{Name: strings.TrimPrefix(key, in.Prefix), Kind: KindPlain}
		v.NameBytes = notText(v.Name)
		in.unread(key, results[3*i].Error())
		is, err := v.take(results[3*i:3*i+3], hashes[i], named)
		if last && errors.Is(err, errChanged) && (v.readNames(hashes[i].names) || !named) {
			is, err = v.Held, nil
		}
		var failed *redisio.Error
		switch {
		case errors.Is(err, errChanged) && !last:
			changed = append(changed, key)
		case err != nil && named && errors.As(err, &failed) && failed.Transient:
			missing = errors.Join(missing, err)
		case err != nil:
			return nil, nil, err
		case is:
			views = append(views, v)
		}
	}
	return views, changed, cmp.Or(in.readDerived(ctx, views), missing)
}

// take converts the replies about a key and the values of its hash, and reports whether the lock is to be shown.
func (v *Lock) take(results []rueidis.RedisResult, of *hash, named bool) (is bool, err error) {
	key, fields := of.key, of.values
	n, err := results[0].AsInt64()
	if err != nil {
		if _, refused := rueidis.IsRedisErr(err); refused && !named && !redisio.Classify(err).Transient {
			return false, nil // the type has changed, or the user may not read the key
		}
		return false, fmt.Errorf("%q: %w", key, redisio.Classify(err))
	}
	if of.err != nil {
		return false, fmt.Errorf("%q: %w", key, redisio.Classify(of.err))
	}
	if fields != nil && len(fields) <= maxOwners {
		n = int64(len(fields)) // the number may have changed since HLEN
	}
	if isLock := v.read(fields, n); !isLock && (!named || n > 0) {
		if of.changed {
			return false, fmt.Errorf("%q: %w", key, errChanged)
		}
		if named {
			return false, fmt.Errorf("the key %q is a hash with %d fields, but not a lock: "+
				"expected owners, \"<client uuid>:<number>\", and their hold counts", key, n)
		}
		return false, nil
	}
	if v.TTL, err = results[2].AsInt64(); err != nil {
		return false, redisio.Classify(err)
	}
	if v.TTL == -2 { // the key has expired since
		v.Held, v.Owners, v.TTL = false, nil, 0
	}
	return named || v.Held, nil
}

// mayBeLock reports whether a hash with these fields may be a lock. The values of other hashes are not read, since they
// belong to other applications and may be large.
func mayBeLock(fields []string) bool {
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f string) bool { return f != "mode" && !ownerField.MatchString(f) })
}

// notText returns the bytes of a name that is not UTF-8, otherwise nil.
func notText(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// The forms of a client and of an owner.
const clientForm = `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	clientID   = regexp.MustCompile(clientForm + `$`)
	ownerField = regexp.MustCompile(clientForm + `:\d{1,400}(:write)?$`)
)

// read converts the fields of a hash to owners, and reports whether they are the fields of a held lock.
func (v *Lock) read(fields [][2]string, n int64) bool {
	mode := ""
	for _, f := range fields {
		if f[0] == "mode" && (f[1] == "read" || f[1] == "write") {
			mode, v.Kind = f[1], KindReadWrite
		}
	}
	if n == 0 || n > 1 && mode == "" && n <= maxOwners {
		return false
	}
	for _, f := range fields {
		if mode != "" && f[0] == "mode" {
			continue
		}
		if !holdCount.MatchString(f[1]) || !ownerField.MatchString(f[0]) {
			return false
		}
		count, problem := exact("the hold count of "+f[0], f[1], maxExact)
		v.addProblem(problem)
		v.addOwner(f[0], count)
	}
	slices.SortFunc(v.Owners, func(a, b Owner) int {
		return cmp.Or(strings.Compare(b.Mode, a.Mode), strings.Compare(a.Field, b.Field))
	})
	v.Held = len(v.Owners) > 0
	if n > maxOwners {
		v.MoreOwners = n - 1 - int64(len(v.Owners)) // one field is the mode
	}
	return v.Held
}

// readNames takes the owners from the names of the fields, and reports whether they are the fields of a held lock. The
// values of the fields, the hold counts, have changed since.
func (v *Lock) readNames(names []string) bool {
	*v = Lock{Name: v.Name, NameBytes: v.NameBytes, Kind: KindPlain}
	if slices.Contains(names, "mode") {
		v.Kind = KindReadWrite
	}
	for _, name := range names {
		if name != "mode" {
			v.addOwner(name, Number{})
		}
	}
	v.addProblem("the hold counts are not known: the lock changes faster than it can be read")
	v.Held = len(v.Owners) == 1 || v.Kind == KindReadWrite && len(v.Owners) > 1
	return v.Held
}

// addOwner adds the owner in a field.
func (v *Lock) addOwner(name string, count Number) {
	field, writes := strings.CutSuffix(name, ":write")
	owner := Owner{Field: field, Count: count}
	if v.Kind == KindReadWrite {
		if owner.Mode = "read"; writes {
			owner.Mode = "write"
		}
	}
	v.Owners = append(v.Owners, owner)
}

// HolderWaiters returns the number of requests that wait in the processes of the owners; unknown if the number of one
// process is unknown.
func (v *Lock) HolderWaiters() Number {
	n := Known(0)
	for _, o := range v.Owners {
		n = n.plus(o.Waiters)
	}
	return n
}

// LongestWait returns the longest known wait of the queue.
func (v *Lock) LongestWait() (longest Number) {
	for _, w := range v.Queue {
		if w.Waiting.Known && (!longest.Known || w.Waiting.N > longest.N) {
			longest = w.Waiting
		}
	}
	return longest
}

// addProblem adds a problem, unless text is empty.
func (v *Lock) addProblem(text string) {
	if text != "" {
		v.Problems = append(v.Problems, text)
	}
}
