package look

import (
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
// that a client listens to.
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
	err = l.scan(ctx, redisio.AnyCalls, "string", func(keys []string) error {
		for _, key := range keys {
			if end := strings.LastIndexByte(key, ':'); clientID.MatchString(key[end+1:]) {
				add(redisio.NamesIn(redisio.AnyCalls, key[:end])...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.scan(ctx, redisio.AnyTaken, "zset", func(keys []string) error {
		for _, key := range keys {
			add(redisio.NamesIn(redisio.AnyTaken, key)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, channels := range []string{redisio.AnyPermitsChannel, redisio.AnyLatchChannel} {
		for _, channel := range l.channels(ctx, channels) {
			add(redisio.NamesIn(channels, channel)...)
		}
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(found)), PageSize) {
		some, err := l.counters(ctx, page, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// channels lists the channels that match, on every master. What the user may not know is not listed.
func (l Looker) channels(ctx context.Context, pattern string) (all []string) {
	for _, node := range l.Client.Nodes() {
		some, _ := node.Do(ctx, node.B().PubsubChannels().Pattern(pattern).Build()).AsStrSlice()
		all = append(all, some...)
		if l.Client.Mode() == rueidis.ClientModeCluster {
			some, _ = node.Do(ctx, node.B().PubsubShardchannels().Pattern(pattern).Build()).AsStrSlice()
			all = append(all, some...)
		}
	}
	return all
}

// matches reports whether a name matches a pattern of SCAN. It is one of path.Match, but that a slash there
// matches only itself.
func matches(pattern, name string) bool {
	noSlash := strings.NewReplacer("/", "\x00")
	match, err := path.Match(noSlash.Replace(pattern), noSlash.Replace(name))
	return match && err == nil
}
