package inspect

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// readDerived reads the data that belongs to the locks: tokens, queues and subscribers. Data that the
// user may not read is left out.
func (in Inspector) readDerived(ctx context.Context, views []Lock) error {
	if len(views) == 0 {
		return nil
	}
	var commands []rueidis.Completed
	channels, queues := make([]string, len(views)), make([]*hash, len(views))
	for i, v := range views {
		key, form := in.Prefix+v.Name, forms.Plain
		if v.Kind == KindReadWrite {
			form = forms.ReadWrite
		}
		channels[i], queues[i] = form.Channel(key), &hash{key: form.WaitQueue(key)}
		commands = append(commands, in.Command("GETRANGE", keyspace.Token(key), "0", longestNumber), in.Command("LLEN", keyspace.Queue(key)),
			in.Command("LRANGE", keyspace.Queue(key), "0", "0"),
			in.Command("HRANDFIELD", queues[i].key, strconv.Itoa(maxOwners)))
	}
	results := in.all(ctx, commands)
	listeners, now := in.Listeners(ctx, channels), in.now(ctx)
	for i := range views {
		names, err := results[4*i+3].AsStrSlice()
		in.unread(queues[i].key, err)
		in.unread(keyspace.Token(in.Prefix+views[i].Name), results[4*i].Error())
		in.unread(keyspace.Queue(in.Prefix+views[i].Name), results[4*i+1].Error())
		queues[i].names = slices.DeleteFunc(names, func(n string) bool { return !clientID.MatchString(n) })
	}
	in.readShort(ctx, queues, longestEntry)
	var fair []*Lock
	for i := range views {
		v, got := &views[i], results[4*i:]
		v.Waiters = listeners[channels[i]]
		if v.Queue = waitQueue(queues[i].values, now); v.Waiters.Known {
			v.Waiters.N = max(v.Waiters.N, int64(len(v.Queue)))
		}
		if v.Kind != KindPlain {
			continue
		}
		if text, err := got[0].ToString(); err == nil && text != "" {
			token, problem := exact("the counter of the tokens", text, maxExact)
			v.Token, v.Kind = token.N, KindFenced
			v.addProblem(problem)
		}
		if n, err := got[1].AsInt64(); err == nil && n > 0 {
			if first, _ := got[2].AsStrSlice(); len(first) > 0 && keyspace.IsOwner(first[0]) { // otherwise the list belongs to another application
				v.Waiters, v.Kind, v.Queue = Known(n), KindFair, nil
				fair = append(fair, v)
			}
		}
	}
	in.readQueues(ctx, fair)
	return ctx.Err()
}

// now returns the time by the clock of Redis in epoch µs, or 0 if it is not known.
func (in Inspector) now(ctx context.Context) (micros int64) {
	if clock, err := in.Client.Do(ctx, in.Client.B().Time().Build()).AsIntSlice(); err == nil && len(clock) == 2 {
		micros = clock[0]*1_000_000 + clock[1]
	}
	return micros
}

// longestNumber is the number of bytes that are read of a value that should be a number; 64-bit numbers are shorter.
const longestNumber = "40"

// readQueues reads the beginnings of the queues of fair locks. The caller has checked that the first entry of each is
// an owner: entries of another application may be large.
func (in Inspector) readQueues(ctx context.Context, views []*Lock) {
	var commands []rueidis.Completed
	for _, v := range views {
		commands = append(commands, in.Command("LRANGE", keyspace.Queue(in.Prefix+v.Name), "0", strconv.Itoa(maxOwners-1)))
	}
	for i, result := range in.all(ctx, commands) {
		owners, _ := result.AsStrSlice()
		for _, owner := range owners {
			if keyspace.IsOwner(owner) {
				views[i].Queue = append(views[i].Queue, Waiter{Field: owner})
			}
		}
	}
}

// Listeners counts the subscribers of channels. In a cluster it adds the subscribers of shard channels, which the
// servers of their slots know, and the subscribers of other channels, as one server knows them. A number is unknown if
// a server does not answer or the user may not ask.
func (in Inspector) Listeners(ctx context.Context, channels []string) map[string]Number {
	counts, err := in.Client.Do(ctx, in.Client.B().PubsubNumsub().Channel(channels...).Build()).AsIntMap()
	all := map[string]Number{}
	for _, channel := range channels {
		all[channel] = asNumber(counts[channel], err)
	}
	if in.Client.Mode() != rueidis.ClientModeCluster {
		return all
	}
	var commands []rueidis.Completed
	for _, channel := range channels {
		commands = append(commands, in.Client.B().PubsubShardnumsub().Channel(channel).Build())
	}
	for i, result := range in.all(ctx, commands) {
		counts, err := result.AsIntMap()
		all[channels[i]] = all[channels[i]].plus(asNumber(counts[channels[i]], err))
	}
	return all
}

// asNumber converts the count of a server. It is zero if the server does not know the command.
func asNumber(n int64, err error) Number {
	if _, refused := rueidis.IsRedisErr(err); err != nil && (!refused || lacksCommand(err) || redisio.Classify(err).Transient) {
		return Number{}
	}
	return Known(n)
}

// waitQueue converts the wait queue of a lock, at a time in epoch µs; see scripts/common/wait_queue_entries.lua.
func waitQueue(fields [][2]string, now int64) (waiters []Waiter) {
	came := map[string]int64{}
	for _, f := range fields {
		arrived, _, _ := strings.Cut(f[1], " ")
		micros, err := strconv.ParseInt(arrived, 10, 64)
		if err != nil || !clientID.MatchString(f[0]) {
			continue
		}
		w := Waiter{Field: f[0]}
		if now > 0 {
			w.Waiting = Known(max(now-micros, 0) / 1000)
		}
		came[w.Field] = micros
		waiters = append(waiters, w)
	}
	slices.SortFunc(waiters, func(a, b Waiter) int {
		return cmp.Or(cmp.Compare(came[a.Field], came[b.Field]), strings.Compare(a.Field, b.Field))
	})
	return waiters
}
