package red_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// chaosTime is how long TestRedChaos goes on: 15 s, or what LOCKKEEPER_CHAOS says, such
// as 60s.
func chaosTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("LOCKKEEPER_CHAOS")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// trusted is the time during which a holder was told that its hold is valid.
type trusted struct {
	from, to time.Time
	process  int
}

// diary is what the clients of a chaos have seen.
type diary struct {
	mu        sync.Mutex
	intervals []trusted
	released  int
	refused   map[string]int
	lost      map[string]int
	untold    int
}

func (d *diary) refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[errorKind(err)]++
}

// errorKind names what kind of error it is.
func errorKind(err error) string {
	for _, kind := range []error{
		lockkeeper.ErrHeld, lockkeeper.ErrTimeout, lockkeeper.ErrUnavailable, lockkeeper.ErrLost, lockkeeper.ErrNotHeld,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}

// use holds the lock for a while and notes for how long that was trusted.
func (d *diary) use(process int, hold *lockkeeper.Hold, while time.Duration) {
	began := time.Now()
	var last time.Time
	for time.Since(began) < while {
		before := time.Now() // the hold was valid after this, if Valid says so
		if !hold.Valid() {
			break
		}
		if last = before; rand.IntN(50) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
			_ = hold.Ensure(ctx, 500*time.Millisecond)
			cancel()
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
	defer cancel()
	told := true
	if !hold.Valid() { // then the holder must be told, without having asked
		select {
		case <-hold.Context().Done():
		case <-ctx.Done():
			told = false
		}
	}
	cause := hold.Err()
	err := hold.Release(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !last.IsZero() {
		d.intervals = append(d.intervals, trusted{began, last, process})
	}
	switch {
	case !told:
		d.untold++
	case cause != nil:
		d.lost[errorKind(cause)]++
	case err != nil:
		d.lost["release: "+errorKind(err)]++
	default:
		d.released++
	}
}

// overlaps are the pairs of holds that were trusted at the same time.
func (d *diary) overlaps() (pairs []string) {
	slices.SortFunc(d.intervals, func(a, b trusted) int { return a.from.Compare(b.from) })
	var latest trusted
	for i, each := range d.intervals {
		if i > 0 && each.from.Before(latest.to) {
			pairs = append(pairs, fmt.Sprintf("process %d for another %v when process %d began", latest.process, latest.to.Sub(each.from), each.process))
		}
		if i == 0 || each.to.After(latest.to) {
			latest = each
		}
	}
	return pairs
}

// fault does something to one of the servers, and says what. A server that is paused or
// down comes back more often than it goes, so that there is a majority most of the time;
// but not always.
func (f *five) fault(t testing.TB, state []string) string {
	t.Helper()
	i := rand.IntN(len(f.servers))
	for range 2 {
		if state[i] == "" {
			i = rand.IntN(len(f.servers))
		}
	}
	server := f.servers[i]
	switch state[i] {
	case "paused":
		server.Resume(t)
		state[i] = ""
		return "resumed"
	case "down":
		server.Restart(t)
		state[i] = ""
		return "restarted empty"
	}
	switch n := rand.IntN(20); {
	case n < 12:
		server.Pause(t)
		state[i] = "paused"
		return "paused"
	case n < 13:
		server.Kill(t)
		state[i] = "down"
		return "killed"
	case n < 19:
		f.proxies[i].Cut()
		return "cut off for a moment"
	default:
		server.Restart(t)
		return "restarted empty"
	}
}

// Servers are killed, paused and restarted empty, beyond the minority as well, while
// three processes contend. Never are two holds trusted at the same time, and whoever
// loses the lock is told.
func TestRedChaos(t *testing.T) {
	cfg := lockkeeper.Config{Watchdog: time.Second, Renewal: 200 * time.Millisecond, Poll: 200 * time.Millisecond}
	f := newFive(t, cfg)
	d := &diary{refused: map[string]int{}, lost: map[string]int{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var clients sync.WaitGroup
	for process := range 3 {
		p := f.party(t)
		for client := range 2 {
			clients.Go(func() {
				for ctx.Err() == nil {
					var options []lockkeeper.Option
					if client == 1 && rand.IntN(2) == 0 {
						options = append(options, lockkeeper.WithLease(500*time.Millisecond))
					}
					if rand.IntN(4) == 0 {
						options = append(options, lockkeeper.WithWait(time.Duration(rand.IntN(2))*time.Second))
					}
					hold, err := p.Acquire(ctx, options...)
					if err != nil {
						d.refuse(err)
						time.Sleep(10 * time.Millisecond)
						continue
					}
					d.use(process, hold, rand.N(time.Duration(1+rand.IntN(300))*time.Millisecond))
				}
			})
		}
	}
	faults, state := map[string]int{}, make([]string, len(f.servers))
	for end := time.Now().Add(chaosTime(t)); time.Now().Before(end); time.Sleep(100*time.Millisecond + rand.N(500*time.Millisecond)) {
		faults[f.fault(t, state)]++
	}
	for i, server := range f.servers {
		switch state[i] {
		case "paused":
			server.Resume(t)
		case "down":
			server.Restart(t)
		}
	}
	stop()
	locktest.Limited(t, "the clients to end", func() bool { clients.Wait(); return true })

	t.Logf("in %v: %d grants, %d of them released, lost %v, refused %v; faults %v",
		chaosTime(t), len(d.intervals), d.released, d.lost, d.refused, faults)
	for _, pair := range d.overlaps() {
		t.Errorf("two trusted holds at once: %s", pair)
	}
	if d.untold > 0 {
		t.Errorf("%d holders were not told that they have lost the lock", d.untold)
	}
	if len(d.intervals) == 0 {
		t.Error("nothing was granted")
	}
	after := f.party(t)
	awaitVotes(t, after.red, cfg.Watchdog, f.servers)
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), after.Lock))
	f.awaitFree(t, allFive...)
}
