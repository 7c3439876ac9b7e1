//go:build !race

package grains

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// calls returns how many commands Redis has carried out, in scripts as well, and how many of them were looks at the members.
func (f *fleet) calls() (all, looks int) {
	stats := locktest.Must(f.redis.Do(f.t, "INFO", "commandstats").ToString())(f.t)
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "info":
			continue
		case "hgetall":
			looks = n
		}
		all += n
	}
	return all, looks
}

// start starts grains, at some of the nodes.
func start(t testing.TB, n int, nodes ...*node) {
	var done sync.WaitGroup
	for i := range 32 {
		done.Go(func() {
			for k := i; k < n; k += 32 {
				if _, err := nodes[k%len(nodes)].ask(fmt.Sprint(k), "where"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
}

// A grain may stop when it has been idle for a while, by a timer of its own or a receive timeout: its entry is removed, and
// the next request starts it again.
func TestGrain_StopsWhenIdle(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a, b := f.member(Config{}), f.member(Config{})
	for _, how := range []string{"idle", "receive-timeout"} {
		_, token := a.mustAsk(t, how, how+" 50ms")
		redistest.Eventually(t, "the stop of the idle grain", func() bool { return f.count(how, "stops") == 1 && f.entries() == 0 })
		if _, higher := b.mustAsk(t, how, how+" 50ms"); higher <= token {
			t.Errorf("%s: the token %d is followed by %d", how, token, higher)
		}
	}
	f.expect()
}

// What an idle member sends to Redis, with one look at its entries for each at the members, does not grow with its grains.
func TestIdle_CommandsDoNotGrowWithGrains(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: time.Minute}})
	perLook := func() float64 {
		const looks = 30
		before, first := f.calls()
		all, last := before, first
		for range looks {
			a.ActorSystem.Root.Send(a.d.activator, checkEntries{})
		}
		redistest.Eventually(t, "more looks", func() bool { all, last = f.calls(); return last >= first+looks })
		return float64(all-before) / float64(last-first)
	}
	none := perLook()
	start(t, 12*maxEntries, a)
	if some := perLook(); some > 2*none {
		t.Errorf("the calls for each look at the members are %.1f without grains, and %.1f with %d", none, some, 12*maxEntries)
	}
}

// BenchmarkIdle counts the commands of three idle members with many grains.
//
//	go test -run '^$' -bench Idle -benchtime 100000x -timeout 20m ./grains
func BenchmarkIdle(b *testing.B) {
	f := newFleet(b, redistest.Start(b))
	defaults := Config{Locks: lockkeeper.Config{Watchdog: 10 * time.Second, Poll: time.Second}}
	nodes := []*node{f.member(defaults), f.member(defaults), f.member(defaults)}
	redistest.Eventually(b, "three members", func() bool { return len(*nodes[0].d.view.Load()) == 3 })
	start(b, b.N, nodes...)
	first, _ := f.calls()
	begin := time.Now()
	<-time.After(20 * time.Second)
	last, _ := f.calls()
	b.ReportMetric(float64(last-first)/time.Since(begin).Seconds(), "commands/s")
}
