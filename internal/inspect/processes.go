package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Process describes a process, from the record of its System. For a client without a record, only
// Client is set.
type Process struct {
	Client      string `json:"client"`
	Application string `json:"application,omitempty"`
	Host        string `json:"host,omitempty"`
	PID         int    `json:"pid,omitempty"`
	// Since is the time at which the System was started, by the clock of its host.
	Since   *time.Time `json:"up_since,omitempty"`
	Version string     `json:"version,omitempty"`
	// Seen is the time in ms since the record was renewed.
	Seen    int64 `json:"seen,omitempty"`
	Overdue bool  `json:"overdue,omitempty"`
}

// processOf converts a record.
func processOf(r protocol.Record) Process {
	p := Process{
		Client: r.Client, Application: r.Application, Host: r.Host,
		PID: r.PID, Version: r.Version, Seen: r.Seen.Milliseconds(), Overdue: r.Overdue(),
	}
	if !r.Since.IsZero() {
		p.Since = &r.Since
	}
	return p
}

// Identify finds the processes of owners and waiters, and adds what the records of the owners say about the locks.
func (in Inspector) Identify(ctx context.Context, views []Lock) error {
	known := map[string]protocol.Record{} // by its key
	each := func(f func(name, field string, to *Process) protocol.Record) {
		for _, v := range views {
			for i := range v.Owners {
				o := &v.Owners[i]
				o.add(f(v.Name, o.Field, &o.Process), in.Prefix+v.Name)
			}
			for i := range v.Queue {
				f(v.Name, v.Queue[i].Field, &v.Queue[i].Process)
			}
		}
	}
	// Most records are under the given prefix. Only those that are not are looked for under other prefixes: the user may
	// have no right to read these, and each refusal is a line in Redis's ACL LOG.
	for _, most := range []int{1, maxPrefixes} {
		var keys []string
		each(func(name, field string, _ *Process) (none protocol.Record) {
			candidates := in.records(name, protocol.ClientOf(field))
			if !known[candidates[0]].Since.IsZero() {
				return none
			}
			for _, key := range candidates[:min(most, len(candidates))] {
				if _, listed := known[key]; !listed {
					known[key] = protocol.Record{}
					keys = append(keys, key)
				}
			}
			return none
		})
		for i, r := range in.read(ctx, keys) {
			known[keys[i]] = r
		}
	}
	each(func(name, field string, to *Process) (none protocol.Record) {
		to.Client = protocol.ClientOf(field)
		for _, key := range in.records(name, to.Client) {
			if r := known[key]; !r.Since.IsZero() {
				*to = processOf(r)
				return r
			}
		}
		return none
	})
	return ctx.Err()
}

// add sets the fields that the record of the owner's process has for the lock.
func (o *Owner) add(r protocol.Record, key string) {
	if d := r.HeldAtLeast(key, o.Field); d > 0 {
		o.HeldAtLeast = Known(d.Milliseconds())
	}
	if n := r.Waiters(key); n >= 0 {
		o.Waiters = Known(n)
	}
	o.Note = r.Note(o.Field)
}

// maxPrefixes bounds the prefixes of a name with which a record is looked for.
const maxPrefixes = 8

// records returns the possible keys of the record of a client that holds a lock. The key prefix of its System may be
// the given prefix, empty, or any beginning of the key that ends like a prefix, as in "app:".
func (in Inspector) records(name, client string) []string {
	prefixes, key := []string{in.Prefix}, in.Prefix+name
	if in.Prefix != "" {
		prefixes = append(prefixes, "")
	}
	for i, b := range []byte(key) {
		if b < utf8.RuneSelf && !unicode.IsLetter(rune(b)) && !unicode.IsDigit(rune(b)) && key[:i+1] != in.Prefix && len(prefixes) < maxPrefixes {
			prefixes = append(prefixes, key[:i+1])
		}
	}
	for i, prefix := range prefixes {
		prefixes[i] = keyspace.System(prefix, keyspace.SystemOf(client))
	}
	return prefixes
}

// read reads the records with these keys. A missing record has a zero Since.
func (in Inspector) read(ctx context.Context, keys []string) (all []protocol.Record) {
	for page := range slices.Chunk(keys, PageSize) {
		var commands []rueidis.Completed
		for _, key := range page {
			commands = append(commands, in.Command("PTTL", key), in.Command("GETRANGE", key, "0", strconv.Itoa(protocol.MaxRecord)))
		}
		results := in.all(ctx, commands)
		for i := range page {
			left, _ := results[2*i].AsInt64()
			says, _ := results[2*i+1].ToString()
			all = append(all, protocol.Inspected("", redisclient.Reply{N: [3]int64{left}, S: [2]string{says}}))
		}
	}
	return all
}

// ErrMoreSystems: there are more Systems than Systems lists.
var ErrMoreSystems = fmt.Errorf("there are more Systems than the first %d of the list, whose records are read", protocol.MaxSystems)

// Systems lists the processes of all Systems. If there are more than protocol.MaxSystems, it returns
// protocol.MaxSystems processes and ErrMoreSystems.
func (in Inspector) Systems(ctx context.Context) (all []Process, err error) {
	ids, err := in.systems(ctx)
	if err != nil && !errors.Is(err, ErrMoreSystems) {
		return nil, err
	}
	for _, r := range in.read(ctx, ids) {
		if !r.Since.IsZero() {
			all = append(all, processOf(r))
		}
	}
	slices.SortFunc(all, func(a, b Process) int {
		return cmp.Or(
			strings.Compare(a.Application, b.Application),
			strings.Compare(a.Host, b.Host),
			cmp.Compare(a.PID, b.PID),
			strings.Compare(a.Client, b.Client),
		)
	})
	return all, cmp.Or(ctx.Err(), err)
}

// systems reads the list of the Systems, and returns the keys of their records. It reads one name per command, and ends
// after 10 MiB, since the list may belong to another application and have long names.
func (in Inspector) systems(ctx context.Context) (keys []string, err error) {
	const page, longestName, maxSize = 100, 64, 10 << 20
	list, size := keyspace.Systems(in.Prefix), 0
	for first := 0; ; first += page {
		var commands []rueidis.Completed
		for rank := first; rank < first+page; rank++ {
			commands = append(commands, in.Command("ZRANGE", list, strconv.Itoa(rank), strconv.Itoa(rank)))
		}
		for i, result := range in.all(ctx, commands) {
			name, err := result.AsStrSlice()
			switch {
			case err != nil:
				return nil, redisio.Classify(err)
			case len(name) == 0:
				return keys, nil
			case first+i >= protocol.MaxSystems || size > maxSize:
				return keys, ErrMoreSystems
			}
			if size += len(name[0]); len(name[0]) <= longestName {
				keys = append(keys, list+":"+name[0])
			}
		}
	}
}
