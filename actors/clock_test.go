package actors

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

func newTestClock(t *testing.T) *clock {
	k := &clock{rt: &Runtime{present: boottime.New()}, sooner: make(chan struct{}, 1)}
	k.running = true // by the test
	return k
}

// pass lets time pass until no alarm is left, and gives all that were woken.
func (k *clock) pass(t *testing.T, now machine.Instant) (order []*lockState) {
	t.Helper()
	for {
		due, sleep, more := k.due(now, nil)
		if !more {
			return order
		}
		if len(due) == 0 && sleep <= 0 {
			t.Fatalf("no alarm is due at %v, and one should be", now)
		}
		for _, s := range due {
			if s.alarm.at > now || s.alarm.place != 0 {
				t.Errorf("woken %v too early, or still set (%d)", s.alarm.at-now, s.alarm.place)
			}
		}
		order = append(order, due...)
		now += sleep
	}
}

// woken is a process that says that its child is woken.
type woken struct {
	actor.Process
	at chan struct{}
}

func (w woken) SendUserMessage(*actor.PID, any) { w.at <- struct{}{} }

// In a busy process the goroutine of a clock may have to wait for its turn: another clock's, which has one, wakes for it.
func TestClocksWakeForEachOther(t *testing.T) {
	r := &Runtime{present: boottime.New(), redis: redisclient.New(client{mode: rueidis.ClientModeStandalone}, 0)}
	for i := range r.clocks {
		r.clocks[i].rt, r.clocks[i].sooner = r, make(chan struct{}, 1)
	}
	process := woken{at: make(chan struct{}, 2)}
	waits, has := &r.clocks[1], &r.clocks[3]
	waits.running = true // and its goroutine has no turn
	waits.set(&lockState{rt: r, process: process}, 0)
	has.set(&lockState{rt: r, process: process}, r.Now())
	for range 2 {
		select {
		case <-process.at:
		case <-time.After(10 * time.Second):
			t.Fatal("not both were woken")
		}
	}
	has.close()
}

// Each is woken once, in order, at the time that was set last; one that has cancelled is not.
func TestClockWakesInOrder(t *testing.T) {
	k := newTestClock(t)
	const n = 1000
	var states []*lockState
	var want []*lockState
	random := func() machine.Instant { return rand.N(time.Hour) }
	for range n {
		s := &lockState{}
		states = append(states, s)
		k.set(s, random())
	}
	for i, s := range states {
		switch i % 3 {
		case 0:
			k.set(s, random())
		case 1:
			k.cancel(s)
			k.cancel(s)
			continue
		}
		want = append(want, s)
	}
	slices.SortStableFunc(want, func(a, b *lockState) int { return int(a.alarm.at - b.alarm.at) })
	got := k.pass(t, 0)
	if len(got) != len(want) {
		t.Fatalf("%d were woken, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].alarm.at != want[i].alarm.at {
			t.Fatalf("the one of %v was woken as number %d, before the one of %v", got[i].alarm.at, i, want[i].alarm.at)
		}
	}
	if k.running {
		t.Error("its goroutine stays without an alarm")
	}
}

// The goroutine is told of whatever it must not sleep through.
func TestClockIsTold(t *testing.T) {
	k := newTestClock(t)
	told := func(what string, want bool) {
		t.Helper()
		select {
		case <-k.sooner:
			if !want {
				t.Errorf("%s: told for nothing", what)
			}
		default:
			if want {
				t.Errorf("%s: not told", what)
			}
		}
	}
	a, b := &lockState{}, &lockState{}
	k.set(a, time.Hour)
	told("the first", true)
	k.set(b, 2*time.Hour)
	told("a later one", false)
	k.set(b, time.Minute)
	told("one that is moved to the front", true)
	k.cancel(a)
	told("one that is cancelled", false)
	k.cancel(b)
	told("the last", true)
	if _, _, more := k.due(time.Hour, nil); more {
		t.Error("there is no alarm to wait for")
	}
}
