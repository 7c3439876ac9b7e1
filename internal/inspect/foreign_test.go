package inspect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// A sorted set under the key of the taken permits belongs to another application if a member is not an id: members
// are neither shown nor counted, and the problem says so. A list leaves the name out.
func TestForeignMembers_AreNotShown(t *testing.T) {
	t.Parallel()
	const id, far = "0123456789abcdef", 99_999_999_999_990
	among := make([]string, 40)
	for i := range among {
		among[i] = fmt.Sprintf("%016d", i)
	}
	among[30] = "ann@example.com"
	for what, members := range map[string][]string{
		"one": {"ann@example.com"}, "empty": {""}, "long": {strings.Repeat("secret", 20_000)},
		"behind an id": {id, "password of ann"}, "among many ids": among,
	} {
		for when, first := range map[string]int{"to end": far, "ended": 1, "before all times": -100} {
			if what == "among many ids" && when != "to end" {
				continue // only a read of all shown permits finds it
			}
			t.Run(what+"/"+when, func(t *testing.T) {
				t.Parallel()
				s, k := locktest.New(t, lockkeeper.Config{})
				k.Do(t, "SET", k.Name, "5")
				for i, member := range members {
					k.Do(t, "ZADD", keyspace.Taken(k.Name), fmt.Sprint(first+i), member)
				}
				in := inspect.Inspector{Client: s.Client}
				c, err := in.Counter(locktest.Within(t), k.Name)
				if err != nil || c == nil {
					t.Fatal(c, err)
				}
				text, err := json.Marshal(c)
				if err != nil || c.Kind != inspect.KindCounter || c.Count != inspect.Known(5) ||
					c.Taken != 0 || len(c.Permits) != 0 || !strings.Contains(c.Problem, "16 bytes") {
					t.Errorf("%.300s, %v", text, err)
				}
				if what == "among many ids" {
					return
				}
				if all, err := in.Counters(locktest.Within(t), k.Name); err != nil || len(all) != 0 {
					t.Errorf("a list has %+v, %v", all, err)
				}
				k.Do(t, "DEL", k.Name)
				if c, err := in.Counter(locktest.Within(t), k.Name); err != nil || c != nil {
					t.Errorf("without a number: %+v, %v", c, err)
				}
			})
		}
	}
}

// A list of another application under the key of a queue does not make a lock fair, and its length is not shown.
func TestForeignQueue_IsNotCounted(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	hold := locktest.Acquire(t, s.Lock(k.LockName))
	defer locktest.Release(t, hold)
	k.Do(t, "RPUSH", keyspace.Queue(k.Name), "job 1", "job 2", "job 3")
	in := inspect.Inspector{Client: s.Client}
	for step, want := range []inspect.Lock{{Kind: inspect.KindPlain, Waiters: inspect.Known(0)}, {Kind: inspect.KindFair, Waiters: inspect.Known(4)}} {
		if step == 1 {
			k.Do(t, "LPUSH", keyspace.Queue(k.Name), "00000000-0000-4000-8000-000000000001:1")
		}
		all, err := in.Inspect(locktest.Within(t), []string{k.Name}, true)
		if err != nil || len(all) != 1 || all[0].Kind != want.Kind || all[0].Waiters != want.Waiters || len(all[0].Queue) != step {
			t.Errorf("%d: %+v, %v", step, all, err)
		}
	}
	k.Do(t, "DEL", keyspace.Queue(k.Name))
}
