package redismodel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// randomStep runs a random step on a server whose terms begin after base.
func randomStep(s *redismodel.Server, kinds []redismodel.Kind, r *rand.Rand, now *machine.Instant, base uint64) {
	client := redismodel.Client(r.IntN(3))
	c := lock.Command{Term: 1 + base + r.Uint64N(3), Lease: time.Duration(1+r.IntN(3)) * time.Second, Tokens: 1}
	switch n := r.IntN(10); {
	case n == 0:
		*now += time.Second
		s.At(*now)
		return
	case n == 1:
		s.Subscribe(client, redismodel.Owner{})
		return
	case n == 2:
		s.Unsubscribe(client, redismodel.Owner{})
		return
	case n == 3:
		c.Kind = lock.Renew
	case n == 4:
		c.Kind = lock.Release
	case n < 7 && kinds[0] == redismodel.Fair && len(kinds) == 1:
		c.Kind, c.Take, c.Term, c.Top = lock.SyncQueue, true, 0, base+1
		c.Entries = []lock.QueueEntry{{Term: base + 2, Lease: time.Second}, {Term: base + 3, Lease: time.Second}}
	case kinds[0] == redismodel.ReadWrite && r.IntN(2) == 0:
		c.Kind, c.Shared = lock.Acquire, 1
	default:
		c.Kind, c.Count, c.Entry = lock.Acquire, 1, lock.Entry{Term: c.Term, TTL: 3 * time.Second, Listens: true}
	}
	s.Run(client, -1, c)
}

// States that differ only in the clock and in the numbers of the terms have the same encoding. Tests of
// internal/protocol check that copies of a server are independent.
func TestEncoder_IgnoresClockAndTermNumbers(t *testing.T) {
	for _, kinds := range [][]redismodel.Kind{
		{redismodel.Fenced}, {redismodel.Fair}, {redismodel.ReadWrite}, {redismodel.Fair, redismodel.ReadPart}, {redismodel.WritePart, redismodel.Fenced},
	} {
		setup := &redismodel.Setup{Kinds: kinds, WaiterTimeout: 5 * time.Second, WaitQueue: redismodel.WaitQueue{OpenTime: time.Second}, Name: redismodel.Owner.String}
		sum := func(now machine.Instant, base uint64, steps int) uint64 {
			r, s, e := rand.New(rand.NewPCG(3, 4)), redismodel.New(setup), redismodel.Encoder{}
			s.At(now)
			for range steps {
				randomStep(&s, kinds, r, &now, base)
			}
			e.Begin(now)
			s.Encode(&e)
			return e.Sum()
		}
		seen := map[uint64]bool{}
		for steps := range 100 {
			seen[sum(time.Hour, 0, steps)] = true
			if sum(time.Hour, 0, steps) != sum(2*time.Hour, 40, steps) {
				t.Errorf("%v: after %d steps, another time and other terms make a difference", kinds, steps)
			}
		}
		if len(seen) < 20 {
			t.Errorf("%v: only %d states have different encodings", kinds, len(seen))
		}
	}
}
