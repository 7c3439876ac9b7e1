package console

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// steps is a watch whose refreshes the test controls.
type steps struct {
	watch
	// begun receives the look-ups of each refresh, and end ends it.
	begun chan []lockID
	end   chan struct{}
}

func newSteps() *steps {
	s := &steps{begun: make(chan []lockID), end: make(chan struct{})}
	s.interval, s.wake = time.Hour, make(chan struct{}, 1)
	s.refresh = func(_ context.Context, lookUps []lockID) *snapshot {
		s.begun <- lookUps
		<-s.end
		found := &snapshot{At: time.Now(), lookUps: map[lockID]*lock{}}
		for _, id := range lookUps {
			found.lookUps[id] = &lock{Kind: id.kind, Name: id.name}
		}
		return found
	}
	return s
}

// A viewer that joins during a refresh without its look-up waits for the next refresh.
func TestLookUps_WaitForTheNextRefresh(t *testing.T) {
	t.Parallel()
	s := newSteps()
	all := s.join(lockID{})
	defer all.leave()
	locktest.Await(t, "the first look", s.begun)
	id := lockID{inspect.KindPlain, "orders"}
	one := s.join(id)
	defer one.leave()
	s.end <- struct{}{}
	if all.next(t.Context()) == nil {
		t.Error("the first viewer does not get the first snapshot")
	}
	if asked := locktest.Await(t, "the second look", s.begun); !slices.Equal(asked, []lockID{id}) {
		t.Errorf("the look-ups are %v", asked)
	}
	s.end <- struct{}{}
	if found := one.next(t.Context()); !found.has(id) {
		t.Error("the viewer gets a snapshot without its look-up")
	}
}

// A snapshot is discarded if a viewer has changed something during the refresh.
func TestSnapshot_IsDiscardedAfterAChange(t *testing.T) {
	t.Parallel()
	s := newSteps()
	before := s.join(lockID{})
	defer before.leave()
	locktest.Await(t, "the first look", s.begun)
	s.hasChanged()
	after := s.join(lockID{})
	defer after.leave()
	s.end <- struct{}{}
	locktest.Await(t, "the second look", s.begun)
	second := time.Now()
	s.end <- struct{}{}
	for _, v := range []*viewer{before, after} {
		if found := v.next(t.Context()); found.At.Before(second) {
			t.Error("the first snapshot is shown")
		}
	}
}
