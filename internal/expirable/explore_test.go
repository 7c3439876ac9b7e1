package expirable

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// TestExplore tries everything that can happen to a few permits with leases. No permit is trusted that
// Redis has not given, or by two; a holder is notified of its loss. When the faults stop, all are answered,
// no client waits while a permit is free, and all permits come back.
func TestExplore(t *testing.T) {
	var all []explore.Scenario[*explore.Processes[*shared]]
	for _, s := range scenes {
		all = append(all, explore.Scenario[*explore.Processes[*shared]]{Name: s.name, Begin: s.begin})
	}
	explore.All(t, all)
}

// The same rules hold in larger worlds, whatever happens in them.
func TestRandomWorlds(t *testing.T) {
	explore.Walk(t, 50, 2000, func(r *rand.Rand) *explore.Processes[*shared] {
		s := scene{permits: 3, again: true, clients: make([][]want, 3)}
		s.may = explore.Budget{explore.Network: 100, explore.Slow: 20, explore.Kill: 1, explore.Leave: 20, explore.Meddle: 10, explore.Sleep: 2}
		for i := range s.clients {
			for range 6 {
				w := want{shown: r.IntN(10) == 0, try: r.IntN(10) == 0, several: max(r.IntN(5)-1, 0)}
				switch r.IntN(6) {
				case 0:
					w.lease = time.Duration(10+r.IntN(4000)) * ms
				case 1:
					w.wait = 300 * ms
				case 2:
					w.most = 500 * ms
				case 4:
					w.leases = extending.leases
				case 3:
					w = []want{{mode: SetTotal, count: 2 + r.IntN(3)}, {mode: SetAdd, count: 1 - r.IntN(3)}}[r.IntN(2)]
				}
				s.clients[i] = append(s.clients[i], w)
			}
		}
		return s.begin()
	})
}

// At most the number of permits is trusted when Redis loses its data again and again, at once or one part after the
// other, and its clients set the number again.
func TestRandomLosses_TrustNoMorePermitsThanThereAre(t *testing.T) {
	explore.Walk(t, 50, 2000, func(r *rand.Rand) *explore.Processes[*shared] {
		s := scene{permits: 1 + r.IntN(2), again: true, clients: make([][]want, 2), empties: true, evicts: true, unset: r.IntN(2) == 0}
		s.may = explore.Budget{explore.Slow: 10, explore.Leave: 20, explore.Meddle: 100}
		for i := range s.clients {
			s.clients[i] = []want{{total: s.permits}, {total: s.permits}}
		}
		return s.begin()
	})
}

// scene is a world: its permits, what the clients of each process want, once or again and again, and
// what may go wrong.
type scene struct {
	name    string
	permits int
	clients [][]want
	may     explore.Budget
	again   bool
	empties bool // Redis may lose its data
	evicts  bool // Redis may lose the number, and then the permits that are taken
	unset   bool // no number of permits is set at first
}

// want is what a client asks for: a permit, or that the number of permits is set. A permit that
// it gets it gives back.
type want struct {
	lease, most, wait time.Duration
	try, shown        bool
	several           int // how many permits it wants; 0 is one
	mode              SetMode
	count, total      int
	leases            []string // that it asks for while it holds a permit
}

const ms = time.Millisecond

var (
	one   = want{}
	fixed = want{lease: 400 * ms}
	// numbered says how many permits there are.
	numbered = want{total: 1}
	ofTwo    = want{total: 2}
	both     = want{several: 2}
	// extending asks for other leases.
	extending = want{leases: []string{briefly, atLength, watched}}
)

var scenes = []scene{
	{name: "one permit", permits: 1, clients: [][]want{{one}, {one}}, may: explore.May(8, 0)},
	{name: "one permit and a fault", permits: 1, clients: [][]want{{one}, {one}}, may: explore.May(6, 1)},
	{name: "one permit and two faults", permits: 1, clients: [][]want{{one}, {one}}, may: explore.May(4, 2)},
	{name: "three clients and a fault", permits: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(5, 1)},
	{name: "two permits, four clients", permits: 2, clients: [][]want{{one, one}, {one, one}}, may: explore.May(4, 0)},
	{name: "fixed leases and a fault", permits: 1, clients: [][]want{{fixed, one}, {fixed}}, may: explore.May(5, 1)},
	{name: "slow", permits: 1, clients: [][]want{{one, fixed}, {one}}, may: explore.May(6, 0, explore.Slow)},
	{name: "slow and a fault", permits: 1, clients: [][]want{{one}, {one}}, may: explore.May(6, 1, explore.Slow)},
	{name: "killed", permits: 1, clients: [][]want{{one, fixed}, {one}}, may: explore.May(5, 1, explore.Kill)},
	{name: "withdrawn", permits: 1, clients: [][]want{{one, one}, {one}}, may: explore.May(5, 1, explore.Leave)},
	{name: "freed by its id", permits: 1, clients: [][]want{{one, {shown: true}}, {one}}, may: explore.May(5, 1, explore.Meddle)},
	{name: "tries, waits and max hold", permits: 1, clients: [][]want{{{try: true}, {most: 500 * ms}}, {{wait: 300 * ms}}}, may: explore.May(5, 1)},
	{name: "Redis comes back empty", permits: 1, clients: [][]want{{numbered, numbered}, {numbered}}, may: explore.May(5, 1, explore.Meddle), empties: true},
	{name: "Redis comes back empty, two permits", permits: 2, clients: [][]want{{ofTwo, ofTwo, ofTwo}, {one}}, may: explore.May(5, 0, explore.Meddle), empties: true},
	{name: "set again, and deleted", permits: 1, clients: [][]want{{numbered}, {numbered}}, may: explore.May(4, 0, explore.Meddle), empties: true, unset: true},
	{name: "evicted one after the other", permits: 1, clients: [][]want{{numbered}, {numbered}}, may: explore.Budget{explore.Times: 5, explore.Meddle: 2}, evicts: true},
	{name: "evicted, two permits", permits: 2, clients: [][]want{{ofTwo, ofTwo}, {ofTwo}}, may: explore.Budget{explore.Times: 5, explore.Meddle: 2}, evicts: true},
	{
		name: "Redis comes back empty, and a long lease is extended", permits: 2,
		clients: [][]want{{{lease: 4000 * ms, total: 2, leases: extending.leases}, ofTwo}},
		may:     explore.Budget{explore.Times: 5, explore.Leave: 1, explore.Meddle: 1}, empties: true,
	},
	{name: "asleep", permits: 1, clients: [][]want{{one, {lease: 3 * time.Hour}}, {one, {mode: SetAdd, count: 1}}}, may: explore.May(4, 1, explore.Sleep)},
	{name: "asleep, and set again", permits: 1, clients: [][]want{{numbered, {mode: SetTotal, count: 2}}, {numbered}}, may: explore.May(4, 1, explore.Sleep), unset: true},
	{name: "extended", permits: 1, clients: [][]want{{extending}, {one}}, may: explore.Budget{explore.Times: 5, explore.Network: 1, explore.Leave: 2}},
	{name: "extended after two faults", permits: 1, clients: [][]want{{extending}, {one}}, may: explore.Budget{explore.Times: 4, explore.Network: 2, explore.Leave: 2}},
	{name: "extended and handed off", permits: 1, clients: [][]want{{extending, one}}, may: explore.Budget{explore.Times: 4, explore.Network: 1, explore.Leave: 1, explore.Slow: 1}},
	{
		name: "a fixed lease that is extended", permits: 1,
		clients: [][]want{{{lease: 400 * ms, leases: extending.leases}}, {one}},
		may:     explore.Budget{explore.Times: 4, explore.Network: 1, explore.Leave: 2},
	},
	{name: "two together", permits: 2, clients: [][]want{{both, one}, {one, both}}, may: explore.May(4, 0)},
	{name: "two together, and one", permits: 2, clients: [][]want{{both}, {one, one}}, may: explore.May(5, 1)},
	{name: "two together, withdrawn", permits: 2, clients: [][]want{{both, one}, {one}}, may: explore.May(5, 0, explore.Leave)},
	{name: "two together, withdrawn, and a fault", permits: 2, clients: [][]want{{both}, {one}}, may: explore.May(4, 1, explore.Leave)},
	{name: "two together, one freed by its id", permits: 2, clients: [][]want{{{several: 2, shown: true}}, {one}}, may: explore.May(4, 1, explore.Meddle)},
	{name: "two together, killed", permits: 2, clients: [][]want{{both}, {one}}, may: explore.May(5, 0, explore.Kill)},
	{name: "two together, and numbered", permits: 2, clients: [][]want{{{several: 2, total: 2}}, {ofTwo}}, may: explore.May(4, 0, explore.Meddle), empties: true},
	{
		name: "two together, extended", permits: 2,
		clients: [][]want{{{several: 2, leases: extending.leases}}, {one}},
		may:     explore.Budget{explore.Times: 4, explore.Network: 1, explore.Leave: 1},
	},
	{name: "more and fewer permits", permits: 1, clients: [][]want{{one, {mode: SetTotal, count: 0}}, {one, {mode: SetAdd, count: 1}}}, may: explore.May(4, 1)},
}

var tinyConfig = machine.Config{
	Watchdog: 1000 * ms, Renewal: 400 * ms, HandOffLimit: 50 * ms, ForcedYield: time.Hour,
	Poll: 600 * ms, CallTimeout: 200 * ms, QueueLimit: 10,
}

func (s *scene) begin() *explore.Processes[*shared] {
	all := &shared{scene: s}
	if !s.unset {
		all.redis = redis{free: s.permits, made: s.permits, set: true}
	}
	for _, wants := range s.clients {
		all.processes = append(all.processes, process{permits: New(&tinyConfig), clients: make([]client, len(wants))})
	}
	return explore.NewProcesses(all, len(s.clients), s.may)
}
