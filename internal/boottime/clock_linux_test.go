package boottime

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The clock is right for sleeps and changes of the wall clock before any reading of any
// clock, also between the readings of one comparison.
func TestNow_CountsSleepAndNothingElse(t *testing.T) {
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
				t.Fatalf("seed %d: the clock shows %v, want between %v and %v", seed, now, earliest, latest)
			}
		}
	}
}

// A wall clock that is set back by the time of a sleep hides it only until the next beat.
func TestBeat_LooksAtBoottime(t *testing.T) {
	t.Parallel()
	m := &machine{wall: 1e18, happens: func(*machine) {}}
	c := &clock{times: m.times, boot: func() (time.Duration, bool) { return 0, false }}
	if c.start() {
		t.Error("the clock starts without CLOCK_BOOTTIME")
	}
	c.boot = m.boot
	c.start()
	m.sleep(time.Hour)
	m.wall -= time.Hour
	if c.Now() != 0 {
		t.Error("the clock has noticed the hidden sleep before the beat: is this test out of date?")
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
		t.Errorf("the clock shows %v after a sleep of an hour", now)
	}
}

// If clocks are slow to read, no two readings are close to each other. Then the clock may show too much,
// but not too little.
func TestNow_ShowsNotTooLittleIfClocksAreSlow(t *testing.T) {
	for _, each := range []time.Duration{15 * time.Microsecond, time.Millisecond} {
		var readings, sleepAt int
		m := &machine{wall: 1e18, asleep: 1e15}
		m.happens = func(m *machine) {
			if readings++; readings > 100 {
				t.Fatalf("%v: the clocks are read endlessly", each)
			}
			if readings == sleepAt {
				m.sleep(20 * time.Second)
			}
			m.run(each)
		}
		c := &clock{times: m.times, boot: m.boot}
		c.start()
		start, last := m.mono+m.asleep-c.Now(), time.Duration(0)
		for step := range 160 {
			sleepAt = 0
			switch step % 4 {
			case 1:
				m.wall += time.Hour // the wall clock is set
				sleepAt = step / 4
			case 2:
				m.sleep(20 * time.Second)
			case 3:
				m.wall -= time.Hour
			}
			earliest := m.mono + m.asleep - start
			readings = 0
			now := c.Now()
			if latest := m.mono + m.asleep - start + 5*each; now < earliest || now > latest || now < last {
				t.Fatalf("%v: the clock shows %v after %v, want between %v and %v", each, now, last, earliest, latest)
			}
			last = now
		}
	}
}
