package boottime

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestSandboxWithoutBoottime(t *testing.T) {
	m := &machine{happens: func(*machine) {}}
	c := &clock{times: m.times, boot: func() (time.Duration, bool) { return 0, false }}
	if c.start() {
		t.Error("there is no CLOCK_BOOTTIME to go by")
	}
}

// Sleeps and settings of the wall clock come before any reading of any clock, also in the
// middle of a look at several of them.
func TestNowCountsSleepAndNothingElse(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := &machine{wall: 1e18, asleep: 1e15}
		m.happens = func(m *machine) {
			d := time.Duration(random.Int64N(int64(time.Hour)))
			switch random.IntN(20) {
			case 0:
				m.sleep(d)
			case 1:
				m.wall += d
			case 2:
				m.wall -= d
			case 3:
				m.run(d) // the reader was interrupted
			default:
				m.run(time.Microsecond)
			}
		}
		c := &clock{times: m.times, boot: m.boot}
		c.start()
		passed := func() time.Duration { return m.mono + m.asleep - c.zero }
		for range 10_000 {
			earliest := passed()
			now := c.Now()
			if latest := passed(); now < earliest-jitter || now > latest+jitter {
				t.Fatalf("seed %d: the clock says %v, and it is between %v and %v", seed, now, earliest, latest)
			}
		}
	}
}

// A wall clock that is set back by the time of a sleep hides it only until the next beat.
func TestBeatLooksAtBoottime(t *testing.T) {
	m := &machine{wall: 1e18, happens: func(*machine) {}}
	c := &clock{times: m.times, boot: m.boot}
	c.start()
	m.sleep(time.Hour)
	m.wall -= time.Hour
	if c.Now() != 0 {
		t.Error("the clock says more than the wall clock tells it: is this test out of date?")
	}
	beats := make(chan time.Duration, 1)
	stop := c.Beat(func() {
		select {
		case beats <- c.Now():
		default:
		}
	})
	defer stop()
	if now := <-beats; now != time.Hour {
		t.Errorf("the clock says %v after a sleep of an hour", now)
	}
}
