package grains

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// world has members that decide with activations, and a real Redis. Commands are late, are repeated, and lose their replies;
// members leave, are killed, and are paused beyond their lease.
type world struct {
	*rand.Rand
	t       *testing.T
	redis   store
	model   model // of redis, which has the same replies and entries
	members []*worldMember
	terms   int
	grains  []string
	// seen has all entries that Redis has had, by grain: a lookup may have read an old entry.
	seen map[string][]string
	// late are commands that may still be carried out, at any time and again.
	late   []func()
	newest map[string]int64
	starts int
	broken []string
}

type worldMember struct {
	activations[int]
	id string
	// trusts: it is before the end of its lease.
	trusts bool
	calls  []*worldCall
}

// worldCall is a registration whose reply is awaited.
type worldCall struct {
	it    *activation[int]
	token int64
	run   func()
}

func (w *world) do(words ...string) {
	command := w.redis.client.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build()
	if err := w.redis.client.Do(context.Background(), command).Error(); err != nil && !rueidis.IsRedisNil(err) {
		w.t.Fatal(err)
	}
}

func (w *world) lease(member string) string { return w.redis.prefix + w.redis.lease(member) }

// begin begins a term of a member.
func (w *world) begin(m *worldMember) {
	w.terms++
	*m = worldMember{id: fmt.Sprint("m", w.terms), trusts: true}
	m.activations.begin()
	w.do("SET", w.lease(m.id), "1")
	w.model.leases = append(w.model.leases, make([]bool, w.terms+1-len(w.model.leases))...)
	w.model.leases[w.terms] = true
}

// endLease ends the lease of a member in Redis.
func (w *world) endLease(id string) {
	w.do("DEL", w.lease(id))
	w.model.leases[number(id)] = false
}

// number returns the number of a member in the model.
func number(id string) (n int8) {
	_, _ = fmt.Sscanf(id, "m%d", &n)
	return n
}

// modeled returns an entry as the model has it.
func modeled(entry string) (e modelEntry) {
	_, _ = fmt.Sscanf(entry, "m%d#%d", &e.member, &e.token)
	return e
}

// compare compares Redis with the model, after a command on a grain.
func (w *world) compare(grain string) {
	if want := w.model.entries[slices.Index(w.grains, grain)]; modeled(w.entry(grain)) != want {
		w.broken = append(w.broken, fmt.Sprintf("the entry of %s is %s, and %v in the model", grain, w.entry(grain), want))
	}
}

func (w *world) entry(grain string) string {
	entry, err := w.redis.client.Do(context.Background(), w.redis.client.B().Hget().Key(w.redis.entries()).Field(grain).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		w.t.Fatal(err)
	}
	return entry
}

func (w *world) register(m *worldMember, it *activation[int], expected string) {
	call := &worldCall{it: it}
	id := m.id
	call.run = func() {
		call.token, _ = w.redis.register(it.grain, id, expected, 0)
		if _, token := w.model.register(slices.Index(w.grains, it.grain), number(id), modeled(expected)); int64(token) != call.token {
			w.broken = append(w.broken, fmt.Sprintf("the token is %d, and %d in the model", call.token, token))
		}
		w.compare(it.grain)
		w.seen[it.grain] = append(w.seen[it.grain], w.entry(it.grain))
	}
	m.calls = append(m.calls, call)
}

func (w *world) ask(m *worldMember, grain string) {
	expected := ""
	if all := w.seen[grain]; len(all) > 0 && w.IntN(4) > 0 {
		expected = all[len(all)-1-w.IntN(min(len(all), 3))]
	}
	if it, _, register := m.ask(grain, 1); register {
		w.register(m, it, expected)
	}
}

// reply brings the reply to a registration, or gives the call up.
func (w *world) reply(m *worldMember) {
	if len(m.calls) == 0 {
		return
	}
	i := w.IntN(len(m.calls))
	call := m.calls[i]
	switch w.IntN(4) {
	case 0: // it is given up, and may still be carried out
		w.late = append(w.late, call.run)
		call.token = 0
	case 1:
		w.late = append(w.late, call.run) // and again
		fallthrough
	default:
		call.run()
	}
	m.calls = slices.Delete(m.calls, i, i+1)
	starts := m.registered(call.it, call.token)
	call.it.answered()
	if !starts {
		w.unregister(m, call.it)
		return
	}
	if !m.trusts {
		delete(m.all, call.it.grain)
		w.unregister(m, call.it)
		return
	}
	w.starts++
	if !m.open {
		w.broken = append(w.broken, "a grain starts in a term that ends")
	}
	if call.token > 0 && call.token <= w.newest[call.it.grain] {
		w.broken = append(w.broken, "a token does not grow")
	}
	w.newest[call.it.grain] = max(w.newest[call.it.grain], call.token)
	for _, other := range w.members {
		if it := other.all[call.it.grain]; it != nil && it.runs && other.trusts && it != call.it {
			w.broken = append(w.broken, call.it.grain+" runs twice")
		}
	}
}

func (w *world) unregister(m *worldMember, it *activation[int]) {
	if it.token == 0 {
		return
	}
	entry := entryText(m.id, it.token)
	w.late = append(w.late, func() {
		locktest.OK(w.t, w.redis.unregister(context.Background(), "", []entryOf{{it.grain, entry}}))
		w.model.unregister(slices.Index(w.grains, it.grain), modeled(entry))
		w.compare(it.grain)
	})
}

// stop lets a grain stop.
func (w *world) stop(m *worldMember, grain string) {
	it := m.all[grain]
	if it == nil || !it.runs {
		return
	}
	if it.stopping.CompareAndSwap(false, true) && w.IntN(2) == 0 {
		return // it takes its time
	}
	m.stopped(it, m.trusts)
	w.unregister(m, it)
}

// end lets a term end as soon as nothing runs in it.
func (w *world) end(m *worldMember) {
	m.close()
	if len(m.all) == 0 {
		w.endLease(m.id)
		w.begin(m)
	}
}

func (w *world) step() {
	m := w.members[w.IntN(len(w.members))]
	grain := w.grains[w.IntN(len(w.grains))]
	switch n := w.IntN(100); {
	case n < 35:
		w.ask(m, grain)
	case n < 70:
		w.reply(m)
	case n < 82:
		w.stop(m, grain)
	case n < 92 && len(w.late) > 0:
		i := w.IntN(len(w.late))
		w.late[i]()
		if w.IntN(2) == 0 {
			w.late = slices.Delete(w.late, i, i+1)
		}
	case n < 94 || !m.open:
		w.end(m)
	case n < 96: // it is paused beyond its lease
		m.trusts = false
		w.endLease(m.id)
	case n < 98: // it is killed
		for _, call := range m.calls {
			w.late = append(w.late, call.run)
		}
		w.endLease(m.id)
		dead := m.id
		w.late = append(w.late, func() { // late: what it has found is old
			locktest.Must(w.redis.bury(context.Background(), 0, nil, []string{dead}))(w.t)
			w.model.bury()
			w.compare(w.grains[0])
			w.compare(w.grains[1])
		})
		w.begin(m)
	}
}

// run plays random worlds, until a rule is broken.
func run(t *testing.T, worlds uint64) (starts int, broken []string) {
	client := redistest.Start(t).Client(t)
	for seed := range worlds {
		redis := locktest.Must(newStore(client, "", fmt.Sprint("w", seed), time.Minute))(t)
		w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, redis: redis, grains: []string{"k/a", "k/b"}, seen: map[string][]string{}, newest: map[string]int64{}}
		for range 3 {
			m := &worldMember{}
			w.members = append(w.members, m)
			w.begin(m)
		}
		for range 300 {
			w.step()
		}
		starts += w.starts
		if len(w.broken) > 0 {
			return starts, append(w.broken, fmt.Sprint("seed ", seed))
		}
	}
	return starts, nil
}

// Late and repeated commands, lost replies, kills, pauses and burials at any step: no grain ever runs twice, and its tokens
// grow. TestExplore_NoticesWhatIsBroken has a control for each rule.
func TestWorlds(t *testing.T) {
	t.Parallel()
	starts, broken := run(t, 150)
	if len(broken) > 0 {
		t.Error(strings.Join(broken, ", "))
	}
	if starts < 800 {
		t.Errorf("%d starts test too little", starts)
	}
	t.Logf("%d starts", starts)
}
