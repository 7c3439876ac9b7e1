package console

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
)

// A rate is the rate of the last half minute.
func TestRates_AreOfHalfAMinute(t *testing.T) {
	var h history
	now := time.Now()
	if first := h.rates(now, counts{Grants: 1000}); first != nil {
		t.Errorf("the first refresh has a rate: %+v", first)
	}
	if gap := h.rates(now.Add(time.Hour), counts{Grants: 1000 + 7200}); gap.Grants != 2 {
		t.Errorf("after an hour without viewers the rate is %v grants per second, want 2", gap.Grants)
	}
	var last *rates
	for i := range int64(40) {
		last = h.rates(now.Add(time.Hour+time.Duration(i+1)*time.Second), counts{Grants: 8200 + 10*(i+1), Losses: i + 1})
	}
	if last.Grants != 10 || last.Losses != 1 || last.Refusals != 0 || len(h.counted) > 32 {
		t.Errorf("40 s with 10 grants and a loss per second have the rates %+v, from %d refreshes", last, len(h.counted))
	}
}

// The history of a lock has the changes of its holder, and no events because of a look-up, its end or its failure.
func TestHistory_HasTheChangesOfTheHolder(t *testing.T) {
	t.Parallel()
	const name = "orders"
	id, other := lockID{inspect.KindPlain, name}, lockID{inspect.KindPlain, "other"}
	held := func(asked bool) *lock {
		l := &lock{Kind: inspect.KindPlain, Name: name, Asked: asked, Held: true, Here: true}
		if asked {
			l.Owner = "a"
		}
		return l
	}
	free := &lock{Kind: inspect.KindPlain, Name: name, Asked: true}
	system := func(locks ...*lock) *snapshot {
		s := &snapshot{listed: true}
		for _, l := range locks {
			s.Locks = append(s.Locks, *l)
		}
		return s
	}
	lookUp := func(s *snapshot, id lockID, l *lock) *snapshot {
		s.lookUps = map[lockID]*lock{id: l}
		return s
	}
	failed := &lock{Kind: inspect.KindPlain, Name: "other", err: errors.New("failed")}
	const isHeld, isFree, isGone = "is held by this process", "is free", "is no longer held or waited for here"
	for what, test := range map[string]struct {
		looks []*snapshot
		want  []string
	}{
		"held, and released":                    {[]*snapshot{system(held(true)), system(held(true)), system()}, []string{isHeld, isGone}},
		"released during a look-up that fails":  {[]*snapshot{system(held(true)), lookUp(system(), other, failed)}, []string{isHeld, isGone}},
		"no list of locks":                      {[]*snapshot{system(held(true)), {}, system(held(true))}, []string{isHeld}},
		"no list, then released":                {[]*snapshot{system(held(true)), {}, system()}, []string{isHeld, isGone}},
		"behind the first locks for a while":    {[]*snapshot{system(held(true)), system(held(false)), system(held(true)), system()}, []string{isHeld, isGone}},
		"looked up, and then not":               {[]*snapshot{lookUp(system(), id, held(true)), system(), lookUp(system(), id, held(true))}, []string{isHeld}},
		"looked up, and free":                   {[]*snapshot{lookUp(system(), id, held(true)), lookUp(system(), id, free)}, []string{isHeld, isFree}},
		"looked up behind the first, and freed": {[]*snapshot{lookUp(system(held(false)), id, held(true)), system()}, []string{isHeld, isGone}},
		"looked up as well, then released":      {[]*snapshot{lookUp(system(held(true)), id, held(true)), lookUp(system(), id, free)}, []string{isHeld, isFree}},
		"looked up; a failure says nothing of it": {
			[]*snapshot{
				lookUp(system(), id, held(true)), lookUp(system(), id, &lock{Kind: inspect.KindPlain, Name: name}),
				lookUp(system(), id, held(true)),
			},
			[]string{isHeld},
		},
	} {
		var h history
		for _, s := range test.looks {
			h.compare(s)
		}
		var got []string
		for _, e := range h.events {
			got = append(got, e.Text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", what, got, test.want)
		}
	}
}
