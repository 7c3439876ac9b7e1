package lockkeeper_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
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
			k := newKey(t, redistest.Shared(t))
			s := open(t, k.server.URL(), lockkeeper.Config{})
			outer := s.acquire(t, k, c.outer...)
			inner, err := s.Lock(k.lock).Acquire(outer.Context(), c.inner...)
			if c.refused != "" {
				isError(t, err, lockkeeper.ErrInvalid)
				if !strings.Contains(err.Error(), c.refused) {
					t.Errorf("the error does not say what is allowed: %v", err)
				}
				k.heldBy(t, s, "1")
				release(t, outer)
				k.isFree(t)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			release(t, inner)
			release(t, outer)
			k.isFree(t)
		})
	}
}

// A longer lease prolongs the hold, and so every Hold of its call tree.
func TestReentryProlongsAFixedHold(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	outer := s.acquire(t, k, lockkeeper.WithLease(time.Second))
	inner := acquireIn(t, outer.Context(), s, k, lockkeeper.WithLease(20*time.Second))
	for _, hold := range []*lockkeeper.Hold{outer, inner} {
		if err := hold.Ensure(within(t), 15*time.Second); err != nil {
			t.Error(err)
		}
	}
	release(t, inner)
	if err := outer.Ensure(within(t), 15*time.Second); err != nil {
		t.Error(err)
	}
	release(t, outer)
}

func TestOptionsOfAReentryByMessage(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	p := open(t, k.server.URL(), lockkeeper.Config{}).probe(t)
	ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message(), Lease: durationpb.New(5 * time.Second)})
	for _, request := range []*messages.Acquire{
		{Lock: k.message(), Lease: durationpb.New(time.Second)},
		{Lock: k.message(), MaxHold: durationpb.New(time.Second)},
	} {
		if no := ask[*messages.NotAcquired](t, p, request); no.Reason != messages.Reason_REASON_INVALID || no.Detail == "" {
			t.Errorf("refused with %v", no)
		}
	}
	longer := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message(), Lease: durationpb.New(20 * time.Second)})
	if v := longer.Validity.AsDuration(); v < 15*time.Second {
		t.Errorf("the prolonged hold is good for %v", v)
	}
}
