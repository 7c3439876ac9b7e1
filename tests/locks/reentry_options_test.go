package locks_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A re-entry joins the hold. What it asks for besides is had, or refused.
func TestOptionsOfAReentry(t *testing.T) {
	lease, maxHold := lockkeeper.WithLease, lockkeeper.WithMaxHold
	for name, c := range map[string]struct {
		outer, inner []lockkeeper.Option
		refused      string // what the refusal says; "" if there is none
	}{
		"nothing on a watchdog hold":             {},
		"nothing on a fixed hold":                {outer: []lockkeeper.Option{lease(20 * time.Second)}},
		"nothing on a hold with a max hold":      {outer: []lockkeeper.Option{maxHold(20 * time.Second)}},
		"a longer lease on a fixed hold":         {outer: []lockkeeper.Option{lease(5 * time.Second)}, inner: []lockkeeper.Option{lease(20 * time.Second)}},
		"the same lease":                         {outer: []lockkeeper.Option{lease(20 * time.Second)}, inner: []lockkeeper.Option{lease(20 * time.Second)}},
		"the same max hold":                      {outer: []lockkeeper.Option{maxHold(20 * time.Second)}, inner: []lockkeeper.Option{maxHold(20 * time.Second)}},
		"a max hold beyond the end of the lease": {outer: []lockkeeper.Option{lease(5 * time.Second)}, inner: []lockkeeper.Option{maxHold(20 * time.Second)}},
		"a shorter lease on a fixed hold":        {outer: []lockkeeper.Option{lease(20 * time.Second)}, inner: []lockkeeper.Option{lease(time.Second)}, refused: "at least"},
		"a lease on a watchdog hold":             {inner: []lockkeeper.Option{lease(20 * time.Second)}, refused: "watchdog"},
		"a lease on a hold with a max hold":      {outer: []lockkeeper.Option{maxHold(5 * time.Second)}, inner: []lockkeeper.Option{lease(20 * time.Second)}, refused: "watchdog"},
		"a max hold on a watchdog hold":          {inner: []lockkeeper.Option{maxHold(20 * time.Second)}, refused: "max hold"},
		"a shorter max hold":                     {outer: []lockkeeper.Option{maxHold(20 * time.Second)}, inner: []lockkeeper.Option{maxHold(time.Second)}, refused: "max hold"},
	} {
		t.Run(name, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
			outer := s.Acquire(t, k, c.outer...)
			inner, err := s.Lock(k.LockName).Acquire(outer.Context(), c.inner...)
			if c.refused != "" {
				locktest.IsError(t, err, lockkeeper.ErrInvalid)
				if !strings.Contains(err.Error(), c.refused) {
					t.Errorf("the error does not say what is allowed: %v", err)
				}
				k.HeldBy(t, s, "1")
				locktest.Release(t, outer)
				k.IsFree(t)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			locktest.Release(t, inner)
			locktest.Release(t, outer)
			k.IsFree(t)
		})
	}
}

// A longer lease prolongs the hold, and so every Hold of its call tree.
func TestReentryProlongsAFixedHold(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	outer := s.Acquire(t, k, lockkeeper.WithLease(time.Second))
	inner := s.AcquireIn(t, outer.Context(), k, lockkeeper.WithLease(20*time.Second))
	for _, hold := range []*lockkeeper.Hold{outer, inner} {
		if err := hold.Ensure(locktest.Within(t), 15*time.Second); err != nil {
			t.Error(err)
		}
	}
	locktest.Release(t, inner)
	if err := outer.Ensure(locktest.Within(t), 15*time.Second); err != nil {
		t.Error(err)
	}
	locktest.Release(t, outer)
}

func TestOptionsOfAReentryByMessage(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	p := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}).Probe(t)
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(5 * time.Second)})
	for _, request := range []*messages.Acquire{
		{Lock: k.Message(), Lease: durationpb.New(time.Second)},
		{Lock: k.Message(), MaxHold: durationpb.New(time.Second)},
	} {
		if no := locktest.Ask[*messages.NotAcquired](t, p, request); no.Reason != messages.Reason_REASON_INVALID || no.Detail == "" {
			t.Errorf("refused with %v", no)
		}
	}
	longer := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(20 * time.Second)})
	if v := longer.Validity.AsDuration(); v < 15*time.Second {
		t.Errorf("the prolonged hold is good for %v", v)
	}
}
