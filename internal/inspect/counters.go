package inspect

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Counters lists the semaphores, expirable semaphores and latches whose names match, sorted by name, without the
// taken permits. In Redis they are numbers, as many other keys are. So it finds only those with taken permits that
// expire, those for which Lockkeeper has run a command within the last hour, and those with subscribers, even if they
// have no number (see Unset). Those that the user may not read are left out. With an error it also returns those that
// it has found.
func (in Inspector) Counters(ctx context.Context, pattern string) (all []Counter, err error) {
	found := map[string][]string{} // with the records of commands
	add := func(keys ...string) (added []string) {
		for _, key := range keys {
			name, ours := strings.CutPrefix(key, in.Prefix)
			if ours && name != "" && matches(pattern, name) {
				found[key] = found[key][:len(found[key]):len(found[key])]
				added = append(added, key)
			}
		}
		return added
	}
	err = in.scan(ctx, in.prefixed(keyspace.AnyCalls), "string", func(keys []string) error {
		for _, key := range keys {
			if end := strings.LastIndexByte(key, ':'); clientID.MatchString(key[end+1:]) {
				for _, named := range add(keyspace.NamesIn(keyspace.Calls, key[:end])...) {
					found[named] = append(found[named], key)
				}
			}
		}
		return nil
	})
	err = cmp.Or(err, in.scan(ctx, in.prefixed(keyspace.AnyTaken), "zset", func(keys []string) error {
		for _, key := range keys {
			add(keyspace.NamesIn(keyspace.Taken, key)...)
		}
		return nil
	}))
	permits, lacking := in.channels(ctx, in.prefixed(keyspace.AnyPermitsChannel))
	latches, _ := in.channels(ctx, in.prefixed(keyspace.AnyLatchChannel))
	for _, channel := range permits {
		add(keyspace.NamesIn(keyspace.PermitsChannel, channel)...)
	}
	for _, channel := range latches {
		add(keyspace.NamesIn(keyspace.LatchChannel, channel)...)
	}
	known := map[string]bool{} // the command records of the counters that are read
	for page := range slices.Chunk(slices.Sorted(maps.Keys(found)), PageSize) {
		some, failed := in.counters(ctx, page, false)
		all = append(all, some...)
		if failed != nil {
			return all, cmp.Or(err, failed)
		}
		for _, c := range some {
			for _, record := range found[in.Prefix+c.Name] {
				known[record] = true
			}
		}
	}
	all = withoutDuplicates(append(all, in.refused(ctx, found, known)...))
	slices.SortFunc(all, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	return all, cmp.Or(err, lacking)
}

// withoutDuplicates removes a name without a number if the same derived keys belong to another name: those of "N" and
// of "{N}" are the same.
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
	keys := map[string]string{} // by the record; if two keys have the same, the one without braces
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

// channels lists the matching channels on all servers that the client knows. The only error is ErrRights: a server
// without shard channels refuses the command, too.
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

// matches reports whether a name matches a pattern of SCAN. The pattern is like that of path.Match, except that
// wildcards also match a slash.
func matches(pattern, name string) bool {
	noSlash := strings.NewReplacer("/", "\x00")
	match, err := path.Match(noSlash.Replace(pattern), noSlash.Replace(name))
	return match && err == nil
}
