package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

func setups() []*model.Setup {
	var all []*model.Setup
	for _, kinds := range [][]model.Kind{
		{model.Reentrant}, {model.Fenced}, {model.Fair}, {model.ReadWrite}, {model.Fair, model.ReadPart}, {model.WritePart, model.Fenced},
	} {
		all = append(all, &model.Setup{Kinds: kinds, Silence: 5 * time.Second, Announcement: time.Second, Name: model.Owner.String})
	}
	return all
}

// something does one thing to a server, of which the terms begin after base.
func something(s *model.Server, setup *model.Setup, r *rand.Rand, now *core.Instant, base uint64) {
	client, term := model.Client(r.IntN(3)), 1+base+r.Uint64N(3)
	c := core.Command{Term: term, Lease: time.Duration(1+r.IntN(3)) * time.Second, Tokens: 1}
	switch kinds := setup.Kinds; r.IntN(10) {
	case 0:
		*now += time.Second
		s.At(*now)
		return
	case 1:
		s.Subscribe(client, model.Owner{})
		return
	case 2:
		s.Unsubscribe(client, model.Owner{})
		return
	case 3:
		c.Kind = core.Renew
	case 4:
		c.Kind = core.Release
	case 5, 6:
		if kinds[0] == model.Fair && len(kinds) == 1 {
			c.Kind, c.Take, c.Term, c.Top = core.Enrol, true, 0, base+1
			c.Entries = []core.Entry{{Term: base + 2, Lease: time.Second}, {Term: base + 3, Lease: time.Second}}
			break
		}
		fallthrough
	default:
		c.Kind, c.Count, c.Announce = core.Acquire, 1, true
		if kinds[0] == model.ReadWrite && r.IntN(2) == 0 {
			c.Count, c.Shared = 0, 1
		}
	}
	s.Run(client, c)
}

func TestCopiesLiveTheirOwnLives(t *testing.T) {
	for _, setup := range setups() {
		r := rand.New(rand.NewPCG(1, 2))
		s, now := model.New(setup), core.Instant(0)
		for range 500 {
			a, b := s.Clone(), s.Clone()
			before := fmt.Sprintf("%+v", s)
			seed := r.Uint64()
			once, again := now, now
			something(&a, setup, rand.New(rand.NewPCG(seed, 0)), &once, 0)
			alone := fmt.Sprintf("%+v", a)
			something(&b, setup, r, &again, 0)
			if got := fmt.Sprintf("%+v", s); got != before {
				t.Fatalf("%v: copies have changed the original\nfrom %s\nto   %s", setup.Kinds, before, got)
			}
			if got := fmt.Sprintf("%+v", a); got != alone {
				t.Fatalf("%v: one copy has changed another\nfrom %s\nto   %s", setup.Kinds, alone, got)
			}
			s, now = b, again
		}
	}
}

func TestEncodingForgetsWhatMakesNoDifference(t *testing.T) {
	for _, setup := range setups() {
		sum := func(start core.Instant, base uint64, steps int) uint64 {
			r := rand.New(rand.NewPCG(3, 4))
			s, now := model.New(setup), start
			s.At(now)
			for range steps {
				something(&s, setup, r, &now, base)
			}
			var e model.Encoder
			e.Begin(now)
			s.Encode(&e)
			return e.Sum()
		}
		seen := map[uint64]bool{}
		for steps := range 100 {
			seen[sum(time.Hour, 0, steps)] = true
			if sum(time.Hour, 0, steps) != sum(2*time.Hour, 40, steps) {
				t.Errorf("%v: after %d steps, another time and other terms make a difference", setup.Kinds, steps)
			}
		}
		if len(seen) < 20 {
			t.Errorf("%v: only %d states are told apart", setup.Kinds, len(seen))
		}
	}
}
