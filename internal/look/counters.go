package look

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Counters lists the semaphores, permits that expire and latches whose names match, sorted by name, without
// the permits that are taken. In Redis they are numbers, as many other keys are. So it finds those that
// have permits taken that expire, those for which Lockkeeper has run a command within an hour, and those
// that a client listens to. Those that the user may not read are left out. It returns what it has found, also with
// an error.
func (l Looker) Counters(ctx context.Context, pattern string) (all []Counter, err error) {
	found := map[string]struct{}{}
	add := func(keys ...string) {
		for _, key := range keys {
			name, ours := strings.CutPrefix(key, l.Prefix)
			if ours && name != "" && matches(pattern, name) {
				found[key] = struct{}{}
			}
		}
	}
	err = l.scan(ctx, l.prefixed(redisio.AnyCalls), "string", func(keys []string) error {
		for _, key := range keys {
			if end := strings.LastIndexByte(key, ':'); clientID.MatchString(key[end+1:]) {
				add(redisio.NamesIn(redisio.Calls, key[:end])...)
			}
		}
		return nil
	})
	err = cmp.Or(err, l.scan(ctx, l.prefixed(redisio.AnyTaken), "zset", func(keys []string) error {
		for _, key := range keys {
			add(redisio.NamesIn(redisio.Taken, key)...)
		}
		return nil
	}))
	permits, lacking := l.channels(ctx, l.prefixed(redisio.AnyPermitsChannel))
	latches, _ := l.channels(ctx, l.prefixed(redisio.AnyLatchChannel))
	for _, channel := range permits {
		add(redisio.NamesIn(redisio.PermitsChannel, channel)...)
	}
	for _, channel := range latches {
		add(redisio.NamesIn(redisio.LatchChannel, channel)...)
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(found)), PageSize) {
		some, failed := l.counters(ctx, page, 0, false)
		all = append(all, some...)
		if failed != nil {
			return all, cmp.Or(err, failed)
		}
	}
	return all, cmp.Or(err, lacking)
}

// prefixed narrows a pattern of redisio, with one asterisk, to names with the prefix.
func (l Looker) prefixed(pattern string) string {
	return strings.Replace(pattern, "*", "*"+quotePattern(l.Prefix)+"*", 1)
}

// channels lists the channels that match, on every server that the client knows. The error is ErrRights;
// other refusals are those of servers without such channels.
func (l Looker) channels(ctx context.Context, pattern string) (all []string, lacking error) {
	for _, node := range l.Client.Nodes() {
		commands := []rueidis.Completed{node.B().PubsubChannels().Pattern(pattern).Build()}
		if l.Client.Mode() == rueidis.ClientModeCluster {
			commands = append(commands, node.B().PubsubShardchannels().Pattern(pattern).Build())
		}
		for _, result := range node.DoMulti(ctx, commands...) {
			some, err := result.AsStrSlice()
			if all = append(all, some...); lacksCommand(err) {
				lacking = sorted(err)
			}
		}
	}
	return all, lacking
}

// matches reports whether a name matches a pattern of SCAN. It is one of path.Match, but that a slash there
// matches only itself.
func matches(pattern, name string) bool {
	noSlash := strings.NewReplacer("/", "\x00")
	match, err := path.Match(noSlash.Replace(pattern), noSlash.Replace(name))
	return match && err == nil
}
