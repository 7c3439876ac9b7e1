package requestqueue

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// counted is a request that counts how often its key is read.
type counted struct {
	key   Key
	reads *int
}

func (c *counted) Waiting() Key {
	if c.reads != nil {
		*c.reads++
	}
	return c.key
}

// model is a simple queue without a tree.
type model []*counted

func (m *model) remove(leave func(Key) bool) (left []*counted) {
	*m = slices.DeleteFunc(slices.Clone(*m), func(c *counted) bool {
		leaves := leave(c.key)
		if leaves {
			left = append(left, c)
		}
		return leaves
	})
	return left
}

// check compares the results of all queries on a queue and its model.
func check(t *testing.T, q *Queue[*counted], m model) {
	t.Helper()
	if got := slices.Collect(q.All()); !slices.Equal(got, m) || q.Len() != len(m) {
		t.Fatalf("the queue has %d requests (%d), and should have %d", len(got), q.Len(), len(m))
	}
	if len(m) == 0 {
		if q.NextDeadline() != 0 || q.LastID() != 0 || q.owners != nil {
			t.Fatal("an empty queue has a deadline, a last request or an index")
		}
		return
	}
	if q.Head() != m[0] || q.LastID() != m[len(m)-1].key.ID || !slices.Equal(q.Front(300), m[:min(300, len(m))]) {
		t.Fatal("the first or last requests differ")
	}
	waiting, found := q.FirstWaiting()
	if i := slices.IndexFunc(m, func(c *counted) bool { return !c.key.Try }); found != (i >= 0) || found && waiting != m[i] {
		t.Fatalf("the first that waits is %v", waiting)
	}
	fenced := 0
	for _, c := range m {
		if c.key.Fenced {
			fenced++
		}
		if d := c.key.Deadline; d != 0 && (q.NextDeadline() == 0 || d < q.NextDeadline()) {
			t.Fatalf("the next deadline is %v, and there is one at %v", q.NextDeadline(), d)
		}
	}
	if q.Fenced() != fenced {
		t.Fatalf("%d ask for a token, and %d should", q.Fenced(), fenced)
	}
	if height(&q.root) > 2+bits.Len(uint(m[len(m)-1].key.ID)) {
		t.Fatalf("%d levels for %d requests", height(&q.root), len(m))
	}
}

func height[W Waiter](x *node[W]) int {
	if x.kids == nil {
		return 1
	}
	return 1 + height(x.kids[0])
}

// After any sequence of operations, a queue equals its model, and its older copies are unchanged.
func TestQueue_MatchesItsModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q Queue[*counted]
		var m model
		var id uint64
		var out []*counted // removed ones, which may be pushed again
		same := func(got, want []*counted) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %d left, and %d should have", seed, len(got), len(want))
			}
		}
		for step := range 600 {
			before, old := q, slices.Clone(m)
			now, move := time.Duration(r.IntN(1000)), r.IntN(12)
			switch move {
			case 0, 1, 2, 3, 4:
				for range 1 + r.IntN(20) {
					id += 1 + r.Uint64N(3)
					c := &counted{key: Key{ID: id, Owner: r.Uint64N(40), Try: r.IntN(4) == 0, Fenced: r.IntN(3) == 0}}
					if r.IntN(3) == 0 {
						c.key.Deadline = time.Duration(1 + r.IntN(5000))
					}
					q.Push(c)
					m = append(m, c)
				}
			case 5:
				for range min(len(m), 1+r.IntN(5)) {
					if got := q.Pop(); got != m[0] {
						t.Fatalf("seed %d: popped %v, expected %v", seed, got.key, m[0].key)
					}
					m = m[1:]
				}
			case 6, 7:
				for range 1 + r.IntN(20) {
					gone := 1 + r.Uint64N(id+1)
					want := m.remove(func(k Key) bool { return k.ID == gone })
					if c, found := q.Take(gone); found {
						same([]*counted{c}, want)
						out = append(out, c)
					} else {
						same(nil, want)
					}
				}
			case 8:
				owner := 1 + r.Uint64N(39)
				same(q.RemoveOwner(owner), m.remove(func(k Key) bool { return k.Owner == owner }))
			case 9:
				most := 1 + r.IntN(30)
				n := most
				same(q.RemoveExpired(now, most), m.remove(func(k Key) bool {
					if n == 0 || k.Deadline == 0 || now < k.Deadline {
						return false
					}
					n--
					return true
				}))
			case 10:
				last := r.Uint64N(id + 1)
				same(q.RemoveTries(func(c *counted) bool { return c.key.ID <= last }), m.remove(func(k Key) bool { return k.Try && k.ID <= last }))
			case 11:
				if len(out) > 0 {
					c := out[r.IntN(len(out))]
					out = nil
					q.Push(c)
					i, _ := slices.BinarySearchFunc(m, c, func(a, b *counted) int { return a.key.compare(b.key) })
					m = slices.Insert(slices.Clone(m), i, c)
				} else if step%40 == 0 {
					same(q.Remove(func(c *counted) bool { return c.key.ID%8 != 0 }), m.remove(func(k Key) bool { return k.ID%8 != 0 }))
				}
			}
			check(t, &q, m)
			if serves := move >= 5 && move <= 7; (q.Revision() != before.Revision()) == (serves || slices.Equal(m, old)) {
				t.Fatalf("seed %d, step %d: the revision was %d and is %d", seed, step, before.Revision(), q.Revision())
			}
			if got := slices.Collect(before.All()); !slices.Equal(got, old) {
				t.Fatalf("seed %d, step %d: an older copy has changed", seed, step)
			}
			if some := r.Uint64N(id + 2); len(m) > 0 {
				c, found := q.Find(some)
				i := slices.IndexFunc(m, func(c *counted) bool { return c.key.ID == some })
				if found != (i >= 0) || found && c != m[i] {
					t.Fatalf("seed %d: found %v", seed, c)
				}
				c, found = q.Search(func(c *counted) bool { return c.key.ID >= some })
				i = slices.IndexFunc(m, func(c *counted) bool { return c.key.ID >= some })
				if found != (i >= 0) || found && c != m[i] {
					t.Fatalf("seed %d: the first from %d on is %v", seed, some, c)
				}
			}
		}
	}
}

// An operation on one request reads only a few other requests, however many there are.
func TestQueue_CostDoesNotGrow(t *testing.T) {
	for _, n := range []int{1000, 10_000, 100_000} {
		var reads, worst int
		var q Queue[*counted]
		for i := range n {
			q.Push(&counted{key: Key{ID: uint64(i + 1), Owner: uint64(i + 1), Deadline: time.Duration(n + i), Try: i%3 == 0}, reads: &reads})
		}
		q.RemoveOwner(1) // makes the index
		r := rand.New(rand.NewPCG(1, 1))
		total := 0
		run := func(what string, f func()) {
			reads = 0
			f()
			if total, worst = total+reads, max(worst, reads); reads > 2000 {
				t.Fatalf("%d requests: %s reads %d keys", n, what, reads)
			}
		}
		const rounds = 5000
		for i := range rounds {
			some := r.Uint64N(uint64(n)) + 1
			run("withdrawing", func() { q.Take(some) })
			run("withdrawing an owner's", func() { q.RemoveOwner(r.Uint64N(uint64(n)) + 1) })
			run("expiring", func() { q.RemoveExpired(time.Duration(n+i/4), 2) })
			run("arriving", func() {
				q.Push(&counted{key: Key{ID: uint64(n + i + 1), Owner: some, Deadline: time.Hour}, reads: &reads})
			})
		}
		t.Logf("%d requests: %d reads in each of %d rounds, at most %d in one operation", n, total/rounds, rounds, worst)
	}
}
