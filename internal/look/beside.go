package look

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// lookBeside reads what is beside the locks: tokens, queues, and who listens. What the user may
// not read is not shown.
func (l Looker) lookBeside(ctx context.Context, views []Lock) error {
	if len(views) == 0 {
		return nil
	}
	var commands []rueidis.Completed
	channels := make([]string, len(views))
	for i, v := range views {
		key := l.Prefix + v.Name
		if channels[i] = redisio.Channel(key); v.Kind == KindReadWrite {
			channels[i] = redisio.ReadWriteChannel(key)
		}
		commands = append(commands, l.Command("GET", redisio.Token(key)), l.Command("LLEN", redisio.Queue(key)),
			l.Command("LRANGE", redisio.Queue(key), "0", strconv.Itoa(mostOwners-1)),
			l.Command("HRANDFIELD", redisio.Line(key), strconv.Itoa(mostOwners), "WITHVALUES"))
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
		if v.Kind != KindPlain {
			continue
		}
		if token, err := got[0].AsInt64(); err == nil {
			v.Token, v.Kind = token, "fenced"
		}
		if n, err := got[1].AsInt64(); err == nil && n > 0 {
			v.Waiters, v.Kind, v.Queue = n, KindFair, nil
			owners, _ := got[2].AsStrSlice()
			for _, owner := range owners {
				v.Queue = append(v.Queue, Waiter{Field: owner})
			}
		}
	}
	return ctx.Err()
}

// listeners counts who listens to channels. In a cluster that is told of shard channels, by the servers
// of their slots, and of others by one server of those who are connected to it.
func (l Looker) listeners(ctx context.Context, channels []string) map[string]int64 {
	all, _ := l.Client.Do(ctx, l.Client.B().PubsubNumsub().Channel(channels...).Build()).AsIntMap()
	if l.Client.Mode() != rueidis.ClientModeCluster {
		return all
	}
	if all == nil {
		all = map[string]int64{}
	}
	var commands []rueidis.Completed
	for _, channel := range channels {
		commands = append(commands, l.Client.B().PubsubShardnumsub().Channel(channel).Build())
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
func line(fields [][2]string) (waiters []Waiter) {
	for _, f := range fields {
		arrived, _, _ := strings.Cut(f[1], " ")
		micros, err := strconv.ParseInt(arrived, 10, 64)
		if err == nil && clientID.MatchString(f[0]) {
			since := time.UnixMicro(micros)
			waiters = append(waiters, Waiter{Field: f[0], Since: &since})
		}
	}
	slices.SortFunc(waiters, func(a, b Waiter) int { return cmp.Or(a.Since.Compare(*b.Since), strings.Compare(a.Field, b.Field)) })
	return waiters
}
