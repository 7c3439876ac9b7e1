package alarm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClocks() *Clocks {
	start := time.Now()
	return New(func() time.Duration { return time.Since(start) }, func(wakeAll func()) { wakeAll() })
}

// newTestClock returns a clock whose goroutine is the test.
func newTestClock() *clock {
	k := &newClocks().each[0]
	k.running = true
	return k
}

// pass lets time pass until no alarm is left, and returns the alarms that have gone off.
func (k *clock) pass(t *testing.T, now time.Duration) (order []*Alarm) {
	t.Helper()
	for {
		due, sleep, more := k.due(now, nil)
		if !more {
			return order
		}
		if len(due) == 0 && sleep <= 0 {
			t.Fatalf("no alarm is due at %v, and one should be", now)
		}
		for _, a := range due {
			if a.at > now || a.place != 0 {
				t.Errorf("woken %v too early, or still set (%d)", a.at-now, a.place)
			}
		}
		order = append(order, due...)
		now += sleep
	}
}

type woken chan struct{}

func (w woken) Wake() { w <- struct{}{} }

// In a busy process the goroutine of a clock may have to wait for its turn: another clock's, which has one, wakes for
// it.
func TestClocks_WakeForEachOther(t *testing.T) {
	all := newClocks()
	sleeper := make(woken, 2)
	waits, has := all.Alarm(1, sleeper), all.Alarm(3, sleeper)
	waits.clock.running = true // and its goroutine has no turn
	waits.Set(0)
	has.Set(all.now())
	for range 2 {
		select {
		case <-sleeper:
		case <-time.After(10 * time.Second):
			t.Fatal("not both were woken")
		}
	}
	has.clock.close()
}

// Each sleeper is woken once, in order, at the time that was set last; a sleeper that has cancelled is not woken.
func TestClock_WakesInOrder(t *testing.T) {
	k := newTestClock()
	const n = 1000
	var all, want []*Alarm
	random := func() time.Duration { return rand.N(time.Hour) }
	for range n {
		a := &Alarm{clock: k}
		all = append(all, a)
		a.Set(random())
	}
	for i, a := range all {
		switch i % 3 {
		case 0:
			a.Set(random())
		case 1:
			a.Cancel()
			a.Cancel()
			continue
		}
		want = append(want, a)
	}
	slices.SortStableFunc(want, func(a, b *Alarm) int { return int(a.at - b.at) })
	got := k.pass(t, 0)
	if len(got) != len(want) {
		t.Fatalf("%d were woken, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].at != want[i].at {
			t.Fatalf("the one of %v was woken as number %d, before the one of %v", got[i].at, i, want[i].at)
		}
	}
	if k.running {
		t.Error("its goroutine stays without an alarm")
	}
}

// The goroutine is notified of what it must not sleep through.
func TestClock_IsNotifiedOfChanges(t *testing.T) {
	k := newTestClock()
	notified := func(what string, want bool) {
		t.Helper()
		select {
		case <-k.wake:
			if !want {
				t.Errorf("%s: notified for nothing", what)
			}
		default:
			if want {
				t.Errorf("%s: not notified", what)
			}
		}
	}
	a, b := &Alarm{clock: k}, &Alarm{clock: k}
	a.Set(time.Hour)
	notified("the first", true)
	b.Set(2 * time.Hour)
	notified("a later one", false)
	b.Set(time.Minute)
	notified("one that is moved to the front", true)
	a.Cancel()
	notified("one that is cancelled", false)
	b.Cancel()
	notified("the last", true)
	if _, _, more := k.due(time.Hour, nil); more {
		t.Error("there is no alarm to wait for")
	}
}
