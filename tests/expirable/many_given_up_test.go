package expirable_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// An actor that is given up releases also more holds than one command gives back.
func TestExpirable_GivenUpReleasesManyHolds(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	name, holder := k.LockName, s.Probe(t)
	locktest.Ask[*messages.ExpirablePermitsSet](t, holder, &messages.SetExpirablePermits{Lock: message(name), Permits: 100})
	for range 100 {
		locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name)})
	}
	faults.Hit(func(m any) bool { return faultinject.TypeOf(m) == "*messages.Release" }, nil)
	other := s.Probe(t)
	for range 20 {
		other.Send(&messages.Release{Lock: message(name), HoldId: "z"})
	}
	for range 100 {
		locktest.Next[*messages.LeaseLost](t, holder)
	}
	faults.Hit(nil, nil)
	redistest.Eventually(t, "all permits", func() bool { n, _ := k.Do(t, "GET", name).ToString(); return n == "100" })
}
