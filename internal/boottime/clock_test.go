package boottime

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// machine is a machine whose clocks move when they are read.
type machine struct {
	wall, mono, asleep time.Duration
	// happens is called before every reading.
	happens func(m *machine)
}

func (m *machine) times() (wall, mono time.Duration) {
	m.happens(m)
	return m.wall, m.mono
}

func (m *machine) boot() (time.Duration, bool) {
	m.happens(m)
	return m.mono + m.asleep, true
}

func (m *machine) run(d time.Duration) {
	m.wall += d
	m.mono += d
}

func (m *machine) sleep(d time.Duration) {
	m.wall += d
	m.asleep += d
}

// The clock has the speed of the monotonic clock, and never goes backwards for any reader, nor from one reader to the
// next.
func TestNow_NeverGoesBackwards(t *testing.T) {
	c := New()
	before := time.Now()
	first := c.Now()
	var last [4]time.Duration
	for time.Since(before) < 20*time.Millisecond {
		var readers sync.WaitGroup
		for i := range last {
			readers.Go(func() {
				for range 100 {
					now := c.Now()
					if now < last[i] {
						t.Errorf("%v after %v", now, last[i])
					}
					last[i] = now
				}
			})
		}
		readers.Wait()
		if now, latest := c.Now(), slices.Max(last[:]); now < latest {
			t.Fatalf("%v after %v", now, latest)
		}
	}
	if passed, most := c.Now()-first, time.Since(before)+jitter; passed < 20*time.Millisecond || passed > most {
		t.Errorf("20 ms to %v have passed, and the clock shows %v", most, passed)
	}
}

// The clock counts all that the wall clock gains, and ignores what it loses.
func TestCompared_CountsWhatTheWallClockGains(t *testing.T) {
	var least time.Duration
	m := &machine{wall: 1e18, happens: func(*machine) {}}
	c := newCompared(m.times)
	for i := range 10_000 {
		d := rand.N(time.Minute)
		switch i % 4 {
		case 0:
			m.sleep(d)
		case 1:
			m.wall += d
		case 2:
			m.wall -= d
			d = 0
		default:
			m.run(d)
		}
		least += d
		if now := c.Now(); now < least-10_000*jitter || now > least {
			t.Fatalf("the clock shows %v, and %v have passed", now, least)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
