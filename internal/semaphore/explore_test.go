package semaphore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// TestExplore tries everything that can happen to small semaphores and latches. No client has a permit
// that Redis has not given to its process, and a process serves its clients in their order. A latch
// counts each count-down once, and no client passes it while it is closed. When the faults stop, no permit is
// missing, all are answered, and no client waits for what there is.
func TestExplore(t *testing.T) {
	var all []explore.Scenario[*explore.Processes[*shared]]
	for _, s := range scenes {
		all = append(all, explore.Scenario[*explore.Processes[*shared]]{Name: s.name, Begin: s.begin})
	}
	explore.All(t, all)
}

// That Redis carries out no command twice is why the rules hold. The exploration notices if it does.
func TestExplore_NoticesRepeatedCommands(t *testing.T) {
	for _, s := range scenes {
		if s.name != "one permit and a fault" && s.name != "latch, counted down twice" {
			continue
		}
		s.forgets = true
		explore.Notices(t, explore.Scenario[*explore.Processes[*shared]]{Name: s.name, Begin: s.begin}, 20_000)
	}
}

// The same rules hold in larger worlds, whatever happens in them.
func TestRandomWorlds(t *testing.T) {
	t.Run("semaphores", func(t *testing.T) {
		explore.Walk(t, 50, 2000, func(r *rand.Rand) *explore.Processes[*shared] {
			s := scene{count: 1 + r.IntN(6), again: true, left: r.IntN(2) == 0, clients: make([][]want, 3), may: often}
			for i := range s.clients {
				for range 6 {
					w := want{n: 1 + r.IntN(min(s.count, 3))}
					switch r.IntN(12) {
					case 0:
						w = want{does: Drain}
					case 1:
						w = want{does: Inspect}
					case 2:
						w = want{does: Add, n: 1}
					case 3:
						w.try = true
					case 4:
						w.wait = 30 * ms
					}
					s.clients[i] = append(s.clients[i], w)
				}
			}
			return s.begin()
		})
	})
	t.Run("latches", func(t *testing.T) {
		explore.Walk(t, 100, 300, func(r *rand.Rand) *explore.Processes[*shared] {
			s := scene{latch: true, left: r.IntN(2) == 0, count: 1 + r.IntN(9), clients: make([][]want, 3), may: often}
			for i := range s.clients {
				for range 6 {
					w := want{n: 1, try: r.IntN(10) == 0, wait: time.Duration(r.IntN(2)*r.IntN(1000)) * ms}
					if r.IntN(2) == 0 {
						w = want{does: Give, id: fmt.Sprint(r.IntN(5))[r.IntN(2):]}
					}
					s.clients[i] = append(s.clients[i], w)
				}
			}
			return s.begin()
		})
	})
}

var often = explore.Budget{explore.Network: 100, explore.Reject: 5, explore.Slow: 20, explore.Kill: 1, explore.Leave: 30, explore.Sleep: 2}

// scene is a world: its permits or its count, what the clients of each process want, once or again and
// again, and what may go wrong.
type scene struct {
	name    string
	latch   bool
	count   int
	again   bool
	forgets bool // Redis has no records of commands
	left    bool // the callers of releases and count-downs have left when these are rejected
	clients [][]want
	may     explore.Budget
}

// want is what a client asks for: permits, or what does asks for. Those that it gets it gives
// back.
type want struct {
	n    int
	try  bool
	wait time.Duration
	does CommandKind // Give counts a latch down, with this id
	id   string
}

const ms = time.Millisecond

var (
	one   = want{n: 1}
	two   = want{n: 2}
	down  = want{does: Give}
	again = want{does: Give, id: "x"}
)

var scenes = []scene{
	{name: "one permit", count: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(6, 0)},
	{name: "one permit and a fault", count: 1, clients: [][]want{{one}, {one}}, may: explore.May(6, 1)},
	{name: "one permit and two faults", count: 1, clients: [][]want{{one}, {one}}, may: explore.May(4, 2)},
	{name: "one permit, three clients and a fault", count: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(4, 1)},
	{name: "one or two of two permits", count: 2, clients: [][]want{{one, two}, {two}}, may: explore.May(4, 1)},
	{name: "rejected", count: 2, clients: [][]want{{one, two}, {two}}, may: explore.May(4, 1, explore.Reject)},
	{name: "rejected, and left", left: true, count: 2, clients: [][]want{{one, two}, {two}}, may: explore.May(4, 2, explore.Reject)},
	{name: "rejected after a drain", count: 2, clients: [][]want{{two, {does: Drain}}, {one}}, may: explore.May(3, 1, explore.Reject)},
	{name: "latch, rejected", latch: true, count: 2, clients: [][]want{{one, down}, {again, down}}, may: explore.May(3, 1, explore.Reject)},
	{name: "latch, rejected and left", latch: true, left: true, count: 3, clients: [][]want{{one, down}, {again, down}}, may: explore.May(3, 2, explore.Reject)},
	{name: "slow", count: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(6, 0, explore.Slow)},
	{name: "killed", count: 2, clients: [][]want{{one}, {two}}, may: explore.May(4, 1, explore.Kill)},
	{name: "withdrawn", count: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(4, 1, explore.Leave)},
	{name: "tries and waits", count: 1, clients: [][]want{{{n: 1, try: true}, one}, {{n: 1, wait: 300 * ms}}}, may: explore.May(4, 1)},
	{name: "drained", count: 2, clients: [][]want{{two, {does: Drain}}, {one}}, may: explore.May(4, 1)},
	{name: "drained below zero", count: 0, clients: [][]want{{{does: Add, n: -1}}, {{does: Drain}}}, may: explore.May(3, 1, explore.Reject)},
	{name: "more and fewer permits", count: 1, clients: [][]want{{one, {does: Add, n: -1}}, {two, {does: Add, n: 2}}}, may: explore.May(3, 1)},
	{name: "inspected", count: 1, clients: [][]want{{one, {does: Inspect}}, {one}}, may: explore.May(4, 1)},
	{name: "latch", latch: true, count: 2, clients: [][]want{{one, down}, {one, down}}, may: explore.May(4, 1)},
	{name: "latch, counted down twice", latch: true, count: 3, clients: [][]want{{one, down}, {down}}, may: explore.May(4, 1)},
	{name: "latch, counted down by id", latch: true, count: 2, clients: [][]want{{one, again, again}, {down, again}}, may: explore.May(3, 1)},
	{name: "latch and two faults", latch: true, count: 1, clients: [][]want{{again, one}, {again}}, may: explore.May(4, 2)},
	{name: "latch, slow and killed", latch: true, count: 2, clients: [][]want{{one, again}, {down}}, may: explore.May(4, 0, explore.Slow, explore.Kill)},
	{name: "latch, closed again", latch: true, count: 1, clients: [][]want{{down, one}, {{does: Set, n: 1}, down, one}}, may: explore.May(3, 1)},
	{name: "asleep", count: 2, clients: [][]want{{one, {does: Add, n: 1}}, {one}}, may: explore.May(4, 1, explore.Sleep)},
	{name: "asleep after a drain", count: 2, clients: [][]want{{two, {does: Drain}}, {one}}, may: explore.May(3, 1, explore.Sleep)},
	{name: "latch, asleep", latch: true, count: 3, clients: [][]want{{down, one}, {{does: Set, n: 1}, again}}, may: explore.May(3, 1, explore.Sleep)},
	{name: "latch, tries and waits", latch: true, count: 1, clients: [][]want{{{n: 1, try: true}, down}, {{n: 1, wait: 300 * ms}}}, may: explore.May(4, 1, explore.Leave)},
}

var tinyConfig = machine.Config{
	Watchdog: 1000 * ms, HandOffLimit: 50 * ms, ForcedYield: time.Hour, Poll: 600 * ms, CallTimeout: 200 * ms, QueueLimit: 10,
}

func (s *scene) begin() *explore.Processes[*shared] {
	all := &shared{scene: s, redis: redis{free: s.count}}
	for i, wants := range s.clients {
		cfg := tinyConfig
		cfg.Seed = uint64(i)
		p := process{pool: New(&cfg), clients: make([]client, len(wants))}
		if s.latch {
			p.pool = NewLatch(&cfg)
		}
		all.processes = append(all.processes, p)
	}
	return explore.NewProcesses(all, len(s.clients), s.may)
}
