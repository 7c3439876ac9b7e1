package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Names are the names of the counters that a pass over the keys has found.
type Names struct {
	prefix, pattern string
	records         map[string][]string // by key: the keys of the records of commands
}

func (in Inspector) names(pattern string) Names {
	return Names{in.Prefix, pattern, map[string][]string{}}
}

// match reports whether a key belongs to a name that matches.
func (n Names) match(key string) bool {
	name, ours := strings.CutPrefix(key, n.prefix)
	return ours && matches(n.pattern, name)
}

// matching returns the keys of the names that match.
func (n Names) matching(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return key == n.prefix || !n.match(key) })
}

// add adds keys, with the records of their commands.
func (n Names) add(keys []string, records ...string) {
	for _, key := range keys {
		n.records[key] = append(n.records[key], records...)
	}
}

// of returns the keys of the names that match and from which the key derived may be derived, and the type that derived
// has then.
func (n Names) of(derived string) (keys []string, kind string) {
	if end := strings.LastIndexByte(derived, ':'); end >= 0 && clientID.MatchString(derived[end+1:]) {
		return n.matching(keyspace.NamesIn(keyspace.Calls, derived[:end])), "string"
	}
	return n.matching(keyspace.NamesIn(keyspace.Taken, derived)), "zset"
}

// separate adds the names from which keys are derived, and returns the keys of hashes whose names match, if locks is
// set. It asks Redis only for the types of keys that may be derived keys or such hashes. If the user may not know the
// type of a key, the key counts as one: reading it shows whether it is.
func (in Inspector) separate(ctx context.Context, keys []string, names Names, locks bool) (hashes []string, err error) {
	keys = slices.DeleteFunc(keys, func(key string) bool {
		of, _ := names.of(key)
		return len(of) == 0 && !(locks && names.match(key))
	})
	var commands []rueidis.Completed
	for _, key := range keys {
		commands = append(commands, in.Command("TYPE", key))
	}
	for i, result := range in.all(ctx, commands) {
		key := keys[i]
		of, derived := names.of(key)
		kind, failed := result.ToString()
		switch why := redisio.Classify(failed); {
		case failed == nil:
		case why.Transient:
			err = cmp.Or(err, fmt.Errorf("%q: %w", key, why))
		case len(of) > 0: // the user may not ask
			kind = derived
		default:
			kind = "hash"
		}
		switch {
		case kind == "hash" && locks && names.match(key):
			hashes = append(hashes, key)
		case kind == derived && kind == "string":
			names.add(of, key)
		case kind == derived:
			names.add(of)
		}
	}
	return hashes, err
}

// Counters lists the semaphores, expirable semaphores and latches whose names match, sorted by name, without the taken
// permits. In Redis they are numbers, as many other keys are. So Counters finds only synchronizers with taken permits
// that expire, with a command of Lockkeeper within the last hour, or with subscribers, even if they have no number (see
// Unset). Synchronizers that the user may not read are left out. With an error Counters also returns the synchronizers
// that it has found.
func (in Inspector) Counters(ctx context.Context, pattern string) ([]Counter, error) {
	names, err := in.counterNames(ctx, pattern)
	all, failed := in.CountersOf(ctx, names)
	return all, cmp.Or(err, failed)
}

// counterNames finds the names for CountersOf.
func (in Inspector) counterNames(ctx context.Context, pattern string) (Names, error) {
	names := in.names(pattern)
	return names, in.scan(ctx, keyspace.AnyOfCounters, "", func(keys []string) error {
		_, err := in.separate(ctx, keys, names, false)
		return err
	})
}

// CountersOf is Counters for the names that Find has found.
func (in Inspector) CountersOf(ctx context.Context, names Names) (all []Counter, err error) {
	permits, lacking := in.channels(ctx, in.prefixed(keyspace.AnyPermitsChannel))
	latches, _ := in.channels(ctx, in.prefixed(keyspace.AnyLatchChannel))
	for _, channel := range permits {
		names.add(names.matching(keyspace.NamesIn(keyspace.PermitsChannel, channel)))
	}
	for _, channel := range latches {
		names.add(names.matching(keyspace.NamesIn(keyspace.LatchChannel, channel)))
	}
	known := map[string]bool{} // the command records of the counters that are read
	for page := range slices.Chunk(slices.Sorted(maps.Keys(names.records)), PageSize) {
		some, failed := in.counters(ctx, page, false)
		all = append(all, some...)
		if failed != nil {
			return all, failed
		}
		for _, c := range some {
			for _, record := range names.records[in.Prefix+c.Name] {
				known[record] = true
			}
		}
	}
	all = withoutDuplicates(append(all, in.refused(ctx, names.records, known)...))
	slices.SortFunc(all, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	return all, lacking
}

// withoutDuplicates removes a name without a number if the same derived keys belong to another name: "N" and "{N}" have
// the same derived keys.
func withoutDuplicates(all []Counter) []Counter {
	unset := map[string]bool{}
	for _, c := range all {
		unset[c.Name] = c.Problem == Unset
	}
	return slices.DeleteFunc(all, func(c Counter) bool {
		inner := strings.TrimSuffix(strings.TrimPrefix(c.Name, "{"), "}")
		_, plain := unset[inner]
		bracedUnset, braced := unset["{"+c.Name+"}"]
		return c.Problem == Unset && (inner != c.Name && plain || braced && !bracedUnset)
	})
}

// refused returns the counters of the keys whose last command was refused because no number is set, according to the
// command records; see scripts/common/record.lua.
func (in Inspector) refused(ctx context.Context, found map[string][]string, known map[string]bool) (all []Counter) {
	keys := map[string]string{} // by the record; if two keys have the same record, the key without braces
	for key, records := range found {
		for _, record := range records {
			if other, there := keys[record]; !known[record] && (!there || len(key) < len(other)) {
				keys[record] = key
			}
		}
	}
	seen := map[string]bool{}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(keys)), PageSize) {
		var commands []rueidis.Completed
		for _, record := range page {
			commands = append(commands, in.Command("GET", record))
		}
		for i, result := range in.all(ctx, commands) {
			said, _ := result.ToString()
			refused, expire := protocol.RefusedUnset(said)
			key := keys[page[i]]
			if !refused || seen[key] {
				continue
			}
			seen[key] = true
			c := Counter{Name: strings.TrimPrefix(key, in.Prefix), Kind: KindSemaphore, TTL: NoKey, Problem: Unset}
			if c.NameBytes = notText(c.Name); expire {
				c.Kind = KindExpirableSemaphore
			}
			all = append(all, c)
		}
	}
	return all
}

// prefixed restricts a pattern of package keyspace, with one asterisk, to names with the prefix.
func (in Inspector) prefixed(pattern string) string {
	return strings.Replace(pattern, "*", "*"+quotePattern(in.Prefix)+"*", 1)
}

// channels lists the matching channels on all servers that the client knows. The only error is ErrRights, since a
// server without shard channels refuses the command, too.
func (in Inspector) channels(ctx context.Context, pattern string) (all []string, lacking error) {
	for _, node := range in.Client.Nodes() {
		commands := []rueidis.Completed{node.B().PubsubChannels().Pattern(pattern).Build()}
		if in.Client.Mode() == rueidis.ClientModeCluster {
			commands = append(commands, node.B().PubsubShardchannels().Pattern(pattern).Build())
		}
		for _, result := range node.DoMulti(ctx, commands...) {
			some, err := result.AsStrSlice()
			if all = append(all, some...); lacksCommand(err) {
				lacking = classify(err)
			}
		}
	}
	return all, lacking
}
