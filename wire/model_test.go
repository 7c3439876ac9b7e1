package wire_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

var (
	modelSequences = flag.Int("model.sequences", 150, "how many random sequences of commands of each kind of lock to compare with the model")
	modelSeed      = flag.Uint64("model.seed", 0, "compare only the sequence with this seed; choose a kind with -run TestModel/kind")
)

// In seconds. Time passes by multiples of ten, no TTL is a multiple of ten, and few sums
// of them are: so that it never matters how long a sequence really takes.
const (
	silence      = 21 * time.Second
	announcement = 23 * time.Second
)

var (
	leases = []time.Duration{13 * time.Second, 33 * time.Second, 73 * time.Second}
	jumps  = []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}
)

// tooLong is when a sequence is broken off, since TTLs may be as close as that.
const tooLong = 800 * time.Millisecond

var kindsOfLocks = []struct {
	name  string
	kinds func(*rand.Rand) []model.Kind
}{
	{"plain and fenced", always(model.Reentrant)},
	{"fair", always(model.Fair)},
	{"readwrite", always(model.ReadWrite)},
	{"multi", func(r *rand.Rand) []model.Kind {
		parts := []model.Kind{model.Reentrant, model.Fenced, model.Fair, model.ReadPart, model.WritePart}
		return []model.Kind{parts[r.IntN(len(parts))], parts[r.IntN(len(parts))]}
	}},
}

func always(k model.Kind) func(*rand.Rand) []model.Kind {
	return func(*rand.Rand) []model.Kind { return []model.Kind{k} }
}

// TestModel compares the model of Redis with Redis: random sequences of commands, of
// each kind of lock, are run on both. They must reply and publish the same, and keep the
// same state.
func TestModel(t *testing.T) {
	r := startReal(t)
	for _, k := range kindsOfLocks {
		t.Run(k.name, func(t *testing.T) {
			seeds := []uint64{*modelSeed}
			if *modelSeed == 0 {
				seeds = make([]uint64, *modelSequences)
				for i := range seeds {
					seeds[i] = 1 + rand.Uint64N(1<<48)
				}
			}
			steps, brokenOff := 0, 0
			for _, seed := range seeds {
				choices := rand.New(rand.NewPCG(seed, 7))
				s := newSequence(r, choices, k.kinds(choices))
				err := s.run(t)
				steps += len(s.story)
				if s.tooLong() {
					brokenOff++
				}
				r.clear(t, s)
				if err != nil {
					t.Fatalf("with -model.seed=%d, kinds %v:\n\t%s\n%v", seed, s.setup.Kinds, strings.Join(s.story, "\n\t"), err)
				}
			}
			t.Logf("%d sequences with %d steps; %d took too long to be told to their end", len(seeds), steps, brokenOff)
		})
	}
}

// sequence is what happens to one lock on both sides.
type sequence struct {
	choices *rand.Rand
	setup   *model.Setup
	model   model.Server
	real    *real
	locks   *locks
	now     core.Instant // on the model's clock
	begun   time.Time
	seq     uint64
	story   []string
	named   string // the field that the server has named
	onEdge  bool   // a time is left that is a multiple of the jumps
}

func newSequence(r *real, choices *rand.Rand, kinds []model.Kind) *sequence {
	s := &sequence{choices: choices, real: r, locks: r.locks(kinds)}
	s.setup = &model.Setup{
		Kinds: kinds, Silence: silence, Announcement: announcement, Name: s.locks.field,
		Pick: func(fields []model.Field) int {
			// The server chooses at random: the model chooses the same.
			return max(0, slices.IndexFunc(fields, func(f model.Field) bool { return s.spell(f) == s.named }))
		},
	}
	s.model = model.New(s.setup)
	return s
}

func (s *sequence) spell(f model.Field) string {
	name := s.locks.field(f.Owner)
	if f.Write {
		name += ":write"
	}
	return name
}

func (s *sequence) tooLong() bool { return time.Since(s.begun) > tooLong }

func (s *sequence) run(t *testing.T) error {
	t.Helper()
	s.begun = time.Now()
	for range 60 {
		if err := s.step(t); err != nil {
			return err
		}
		state := s.real.state(t)
		if s.tooLong() {
			return nil
		}
		if err := s.compare(state); err != nil || s.onEdge {
			return err
		}
	}
	return nil
}

func (s *sequence) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// rounded is what rounding to milliseconds may make of times.
const rounded = 5 * time.Millisecond

// near reports whether times are the same, but for what the real one has lost meanwhile.
func (s *sequence) near(wanted, got time.Duration) bool {
	return got <= wanted+rounded && got >= wanted-time.Since(s.begun)-rounded
}

// nearInQueue is for the times in a fair queue, which may have gained it as well: who moves
// up does so by what lies between two of them, and they were set at different moments.
func (s *sequence) nearInQueue(wanted, got time.Duration) bool {
	return s.near(wanted, got) || s.near(wanted+time.Since(s.begun), got)
}

// command runs a command on both sides, on one of several parts unless that is negative.
func (s *sequence) command(t *testing.T, c model.Client, part int, command core.Command) error {
	t.Helper()
	s.seq++
	command.Seq = s.seq
	got, heard := s.real.run(t, s.locks, c, part, command)
	s.named = got.Holder
	if s.tooLong() {
		return nil
	}
	before := s.model.Clone()
	var want core.Result
	var told []model.Publication
	if part < 0 {
		want, told = s.model.Run(c, command)
	} else {
		want, told = s.model.RunPart(c, part, command)
	}
	near := s.near
	if got.Holder == "" { // then it is that of the first waiter of a fair lock
		near = s.nearInQueue
	}
	if !near(want.TTL, got.TTL) {
		return fmt.Errorf("the TTL is %v, and in the model %v", got.TTL, want.TTL)
	}
	got.TTL = want.TTL
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		return fmt.Errorf("the result is\n\t%s, and in the model\n\t%s\nbefore, the model was %+v", a, b, before)
	}
	var expected []string
	for _, p := range told {
		expected = append(expected, s.locks.publication(p))
	}
	if !slices.Equal(heard, expected) {
		return fmt.Errorf("%q is published, and in the model %q", heard, expected)
	}
	return nil
}
