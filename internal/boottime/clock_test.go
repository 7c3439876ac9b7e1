package boottime

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// machine is a machine whose clocks move when they are read.
type machine struct {
	wall, mono, asleep time.Duration
	// happens is what happens before every reading.
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

// Two readers see the clock go forwards, and all of them see the same present.
func TestNowDoesNotGoBackwards(t *testing.T) {
	c := New()
	var last [4]time.Duration
	for range 100 {
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
		latest := max(last[0], last[1], last[2], last[3])
		if now := c.Now(); now < latest {
			t.Fatalf("%v after %v", now, latest)
		}
	}
}

func TestNowGoesAtThePaceOfTime(t *testing.T) {
	c := New()
	before := time.Now()
	first := c.Now()
	time.Sleep(20 * time.Millisecond)
	second := c.Now()
	if most := time.Since(before) + jitter; second-first < 20*time.Millisecond || second-first > most {
		t.Errorf("20 ms to %v have passed, and the clock says %v", most, second-first)
	}
}

func TestBeat(t *testing.T) {
	beats := make(chan struct{}, 100)
	stop := New().Beat(func() { beats <- struct{}{} })
	for range 2 {
		select {
		case <-beats:
		case <-time.After(20 * time.Second):
			t.Fatal("no beat")
		}
	}
	stop()
	for len(beats) > 0 {
		<-beats
	}
	time.Sleep(1500 * time.Millisecond)
	if len(beats) > 0 {
		t.Error("a beat after its end")
	}
}

// What the wall clock gains has passed, however it did; what it loses has not unpassed.
func TestComparedCountsWhatTheWallClockGains(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var least time.Duration
	m := &machine{wall: 1e18, happens: func(*machine) {}}
	c := newCompared(m.times)
	for range 10_000 {
		d := time.Duration(random.Int64N(int64(time.Minute)))
		switch random.IntN(4) {
		case 0:
			m.sleep(d)
			least += d
		case 1:
			m.wall += d
			least += d
		case 2:
			m.wall -= d
		default:
			m.run(d)
			least += d
		}
		if now := c.Now(); now < least-10_000*jitter || now > least {
			t.Fatalf("the clock says %v, and %v have passed", now, least)
		}
	}
}

var sink time.Duration

func BenchmarkNow(b *testing.B) {
	c := New()
	for b.Loop() {
		sink = c.Now()
	}
}
