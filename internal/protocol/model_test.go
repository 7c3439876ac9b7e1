package protocol_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

var (
	modelSequences = flag.Int("model.sequences", 60, "how many random sequences of commands of each kind of lock to compare with the model")
	modelSeed      = flag.Uint64("model.seed", 0, "compare only the sequence with this seed; choose a kind with -run TestModel/kind")
)

// Time passes by multiples of ten seconds. No TTL is such a multiple, and few sums of them are, so that the real
// duration of a sequence does not matter.
const waiterTimeout = 21 * time.Second

var queueSettings = protocol.WaitQueue{OpenTime: 15 * time.Second, OneServer: true}

var (
	leases = []time.Duration{13 * time.Second, 33 * time.Second, 73 * time.Second}
	jumps  = []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}
)

// tooLong is when a sequence is aborted: TTLs may be that close to each other.
const tooLong = 800 * time.Millisecond

// kindsOfLocks are the kinds to compare; of a MultiLock, the members are chosen at random.
var kindsOfLocks = map[string][]redismodel.Kind{
	"plain and fenced": {redismodel.Plain}, "fair": {redismodel.Fair}, "readwrite": {redismodel.ReadWrite},
	"multi": {redismodel.Plain, redismodel.Fenced, redismodel.Fair, redismodel.ReadPart, redismodel.WritePart},
}

// Each form in which a kind of lock is stored is compared.
func TestModel_HasEveryKind(t *testing.T) {
	compared := map[*forms.Form]bool{}
	for _, models := range kindsOfLocks {
		if len(models) == 1 {
			compared[models[0].Form()] = true
		}
	}
	for kind, row := range kinds.Table {
		if row.IsLock() && row.Composition == request.OneKey && !compared[row.Form] {
			t.Errorf("%v is not compared with the model", kind)
		}
	}
}

// TestModel compares the model of Redis with Redis: random sequences of commands for each kind of lock run on
// both. They must reply and publish the same, and have the same state.
func TestModel(t *testing.T) {
	r := startReal(t)
	for name, kinds := range kindsOfLocks {
		t.Run(name, func(t *testing.T) {
			sequences, steps, aborted := *modelSequences, 0, 0
			if *modelSeed != 0 {
				sequences = 1
			}
			for range sequences {
				r.Do(t, "FLUSHDB")
				seed := cmp.Or(*modelSeed, 1+rand.Uint64N(1<<48))
				s := newSequence(r, rand.New(rand.NewPCG(seed, 7)), kinds)
				if err := s.play(t); err != nil {
					t.Fatalf("with -model.seed=%d, kinds %v:\n\t%s\n%v", seed, s.setup.Kinds, strings.Join(s.log, "\n\t"), err)
				}
				if steps += len(s.log); s.tooLong() {
					aborted++
				}
			}
			t.Logf("%d sequences with %d steps; %d were aborted since they took too long", sequences, steps, aborted)
		})
	}
}

// sequence is a sequence of steps on one lock, on both sides.
type sequence struct {
	choices *rand.Rand
	setup   *redismodel.Setup
	model   redismodel.Server
	real    *real
	members [clients][]protocol.Member // the lock, or its parts, for each client
	now     machine.Instant            // on the model's clock
	begun   time.Time
	seq     uint64
	log     []string
	named   string // the field in the server's reply
	onEdge  bool   // a remaining time is a multiple of the jumps
}

var locks int // the number of locks so far: each sequence has its own

func newSequence(r *real, choices *rand.Rand, kinds []redismodel.Kind) *sequence {
	if len(kinds) > 1 {
		kinds = []redismodel.Kind{kinds[choices.IntN(len(kinds))], kinds[choices.IntN(len(kinds))]}
	}
	locks++
	s := &sequence{choices: choices, real: r}
	for c := range s.members {
		options := &protocol.Options{Client: fmt.Sprintf("%08x-0000-4000-8000-%012d", c, locks), WaiterTimeout: waiterTimeout, WaitQueue: queueSettings}
		for part, kind := range kinds {
			m := protocol.Member{Lock: protocol.New(kind.Form(), fmt.Sprintf("lock-%d-%d", locks, part), options)}
			m.Fenced = kind == redismodel.Fenced
			if kind == redismodel.ReadPart {
				m.Mode = machine.Shared
			}
			s.members[c] = append(s.members[c], m)
		}
	}
	queue := redismodel.WaitQueue{
		OpenTime: queueSettings.OpenTime, OneServer: true,
	}
	s.setup = &redismodel.Setup{
		Kinds: kinds, WaiterTimeout: waiterTimeout, WaitQueue: queue, Name: s.owner,
		Pick: func(fields []redismodel.Field) int {
			// The server chooses at random: the model chooses the same.
			return max(0, slices.IndexFunc(fields, func(f redismodel.Field) bool {
				return s.named == s.owner(f.Owner)+map[bool]string{true: ":write"}[f.Write]
			}))
		},
	}
	s.model = redismodel.New(s.setup)
	s.now = time.Hour // not 0, which means never
	s.model.At(s.now)
	return s
}

func (s *sequence) owner(o redismodel.Owner) string {
	if o.Kept {
		return s.members[o.Client][0].Keeper(o.Term)
	}
	return s.members[o.Client][0].Owner(o.Term)
}

// channel returns the channel of a part, or of a waiter in its queue; the channel of the clients that use the
// wait queue; or the turn channel of a client.
func (s *sequence) channel(part int, of redismodel.Owner) string {
	switch {
	case of == redismodel.Waiters:
		return s.members[0][part].Waiters()
	case of.Client >= 0 && of == redismodel.TurnChannel(of.Client):
		client, _, _ := strings.Cut(s.members[of.Client][0].Owner(1), ":")
		return keyspace.TurnChannel(client)
	case of.Client >= 0 && of == redismodel.AskedChannel(of.Client):
		client, _, _ := strings.Cut(s.members[of.Client][0].Owner(1), ":")
		return keyspace.AskedChannel(client)
	case of.Term != 0:
		return s.members[of.Client][part].ChannelOf(of.Term)
	}
	return s.members[0][part].Channel
}

func (s *sequence) tooLong() bool { return time.Since(s.begun) > tooLong }

func (s *sequence) play(t *testing.T) error {
	t.Helper()
	s.begun = time.Now()
	for range 60 {
		copied := s.model
		copied.Subscribe(clients, redismodel.Owner{})
		before := fmt.Sprintf("%+v", copied)
		published, err := s.step(t)
		if after := fmt.Sprintf("%+v", copied); after != before {
			return fmt.Errorf("a copy of the model was\n\t%s, and is\n\t%s", before, after)
		}
		state, got := s.real.look(t)
		if s.tooLong() {
			return nil
		}
		var expected []string
		for _, p := range published {
			expected = append(expected, s.channel(p.Part, p.To)+" "+s.payload(p))
		}
		if err == nil && !slices.Equal(got, expected) {
			err = fmt.Errorf("%q is published, and in the model %q", got, expected)
		}
		if err == nil {
			err = s.compare(state)
		}
		if err != nil || s.onEdge {
			return err
		}
	}
	return nil
}

// payload returns the payload of a publication in Redis.
func (s *sequence) payload(p redismodel.Publication) string {
	switch turn := p.Transfer; {
	case turn.Term != 0:
		return fmt.Sprint(turn.Term, " ", turn.Seq, " ", append(turn.Tokens, 0)[0], " ", s.members[0][p.Part].Key())
	case p.All:
		return "1"
	}
	return "0"
}

func (s *sequence) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// near reports whether times are the same, apart from the time that has passed since the sequence began, and from
// rounding to milliseconds. Timeouts in a fair queue may be later by that time: a waiter moves up by the distance
// of two timeouts, which were set at different moments.
func (s *sequence) near(wanted, got time.Duration) bool {
	return (got - wanted).Abs() <= time.Since(s.begun)+5*time.Millisecond
}

// run runs a command on both sides, on one part unless part is negative.
func (s *sequence) run(t *testing.T, c redismodel.Client, part int, command lock.Command) ([]redismodel.Publication, error) {
	t.Helper()
	s.seq++
	command.Seq = s.seq
	got := s.real.run(t, s.members[c], part, command)
	s.named = got.Holder
	before := s.model
	want, published := s.model.Run(c, part, command)
	if !s.near(want.TTL, got.TTL) {
		return nil, fmt.Errorf("the TTL is %v, and in the model %v", got.TTL, want.TTL)
	}
	got.TTL = want.TTL
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		return nil, fmt.Errorf("the result is\n\t%s, and in the model\n\t%s\nbefore, the model was %+v", a, b, before)
	}
	return published, nil
}

// compare returns an error unless Redis and the model have the same state.
func (s *sequence) compare(got state) error {
	want := state{}
	for i := range s.model.Parts() {
		s.expect(want, i)
	}
	same := len(got) == len(want)
	for what, w := range want {
		g, known := got[what]
		same = same && known && g.value == w.value && s.near(w.left, g.left)
		// A key that expires at the next jump of time may expire before it or after.
		s.onEdge = s.onEdge || w.left > 0 && w.left%(10*time.Second) == 0
	}
	if !same {
		return fmt.Errorf("Redis has\n\t%v, and the model\n\t%v", got, want)
	}
	return nil
}

// expect adds the keys of a part as the model has them.
func (s *sequence) expect(want state, part int) {
	lock, name := s.model.Part(part), s.members[0][part].Key()
	field := func(of string, n int) {
		if n > 0 {
			want[name+" "+of] = entry{strconv.Itoa(n), endless}
		}
	}
	readWrite := s.setup.Kinds[part] >= redismodel.ReadWrite
	for _, h := range lock.Holders {
		writer := s.owner(h.Owner)
		if readWrite {
			writer += ":write"
		}
		field(writer, h.Exclusive)
		field(s.owner(h.Owner), h.Shared)
	}
	if !lock.Free() {
		want[name] = entry{"", lock.ExpiresAt - s.now}
		if readWrite {
			want[name+" mode"] = entry{map[bool]string{true: "write", false: "read"}[lock.Written()], endless}
		}
	}
	for _, r := range lock.ReadLeases {
		want[fmt.Sprintf("%s:%s:rwlock_timeout:%d", keyspace.Holds(name), s.owner(r.Owner), r.N)] = entry{"1", r.Until - s.now}
	}
	waiters := keyspace.WaitQueue(name)
	if readWrite {
		waiters = keyspace.ReadWriteQueue(name)
	}
	s.expectWaitQueue(want, waiters, lock)
	if lock.Tokens > 0 {
		want[keyspace.Token(name)] = entry{strconv.FormatInt(lock.Tokens, 10), endless}
	}
	var queue []string
	for _, w := range lock.Queue {
		queue = append(queue, s.owner(w.Owner))
		want[keyspace.Timeouts(name)+" "+s.owner(w.Owner)] = entry{"", w.Timeout - s.model.Clock()}
	}
	if len(queue) > 0 {
		want[keyspace.Queue(name)] = entry{strings.Join(queue, " "), lock.QueueEnds - s.now}
		want[keyspace.Timeouts(name)] = entry{"", lock.QueueEnds - s.now}
	}
}

// expectWaitQueue adds the wait queue as the model has it, without expired entries.
func (s *sequence) expectWaitQueue(want state, key string, l *redismodel.Lock) {
	var order []string
	for _, p := range l.Entries {
		client, _, _ := strings.Cut(s.members[p.Client][0].Owner(1), ":")
		order = append(order, client)
		digits := map[bool]string{true: "1", false: "0"}
		words := fmt.Sprint(p.TTL.Milliseconds(), " ", p.Term, " ", p.Seq, " ", digits[p.Mode == machine.Shared], " ", p.Tokens, " ", digits[p.Listens])
		switch {
		case p.Lapsed:
			words += " -"
		case p.Reserves && p.Since == 0:
			words += " 0"
		case p.Reserves:
			words += " since"
			want[key+" "+client+" since"] = entry{"", p.Since - s.now}
		}
		want[key+" "+client] = entry{words, p.Until - s.now}
	}
	if l.OpenUntil > s.now {
		want[key+" open"] = entry{"", l.OpenUntil - s.now}
	}
	if l.Turns > 0 {
		want[key+" turns"] = entry{strconv.Itoa(l.Turns), endless}
	}
	if len(order) > 0 || l.OpenUntil > s.now || l.Turns > 0 {
		want[key] = entry{strings.Join(order, " "), l.WaitQueueEnds - s.now}
	}
}
