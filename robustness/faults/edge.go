package faults

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// exact is the limit above which a double cannot represent every integer.
const exact = 1 << 53

// seed sets the counters, permits and counts of the next names to numbers near the edges.
func seed(w *World) error {
	near := func(edges ...int64) int64 {
		edge := edges[w.random.IntN(len(edges))]
		return edge + min(int64(w.random.IntN(40)-30), math.MaxInt64-edge)
	}
	for _, next := range []struct {
		name, key string
		number    int64
	}{
		{traffic.EdgeName(traffic.Fenced, 1), keyspace.Token(traffic.EdgeName(traffic.Fenced, 1)),
			near(exact, exact, time.Now().UnixNano(), math.MaxInt64)},
		{traffic.EdgeName(traffic.Semaphore, 1), traffic.EdgeName(traffic.Semaphore, 1), near(math.MaxInt32, math.MaxInt32, exact)},
		{traffic.EdgeName(traffic.Latch, 1), traffic.EdgeName(traffic.Latch, 1), near(math.MaxInt64, exact)},
	} {
		set, err := w.server.Do("SET", next.key, strconv.FormatInt(next.number, 10), "NX")
		if err != nil {
			return err
		}
		if set.Str != "OK" {
			continue // it was set before
		}
		w.round.seeded = append(w.round.seeded, next.name)
		if err := w.during(history.Fault{Name: "numbers near the edges", Proc: -1, Lock: next.name, Number: next.number},
			func() error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// edgeNumbers adds the final numbers of the synchronizers to found, and removes them from Redis.
func (w *World) edgeNumbers(found map[string]judge.Permits) (left []string, err error) {
	for _, name := range w.round.seeded {
		number, err := w.server.Do("GET", name)
		if err != nil {
			return nil, err
		}
		if text := number.Str; number.Kind == '$' {
			n, err := strconv.Atoi(text)
			if err != nil {
				left = append(left, fmt.Sprintf("%s has the number %q", name, text))
			}
			found[name] = judge.Permits{Free: n}
		}
		for _, key := range []string{name, keyspace.Token(name), keyspace.Counted(name)} {
			if _, err := w.server.Do("DEL", key); err != nil {
				return nil, err
			}
		}
	}
	return left, nil
}
