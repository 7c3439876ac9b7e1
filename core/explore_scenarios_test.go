package core_test

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// scenario says who lives in a microcosm, and what may happen in it.
type scenario struct {
	name    string
	kind    core.Kind
	config  *core.Config
	setup   *model.Setup
	callers [peers][callers]core.Ticket // Owner 0 is not there; a Deadline counts from when it asks
	again   core.Mode                   // of re-entries
	// siblings: the two are lock actors of one process, with one client id, on one key.
	siblings bool
	most     budget
}

// budget is how many of each may happen.
type budget struct {
	faults, errors, crashes                    int8
	cancels, reentries, forces, deaths, closes int8
	flushes, restarts, kills, pauses           int8
	// times is how often time may pass, and that only while nothing is on its way; 0: at
	// any time. So bounded, a microcosm has not so many states that they cannot all be seen.
	times int8
}

func (b *budget) all() [13]int8 {
	return [...]int8{
		b.faults, b.errors, b.crashes, b.cancels, b.reentries, b.forces, b.deaths, b.closes, b.flushes, b.restarts, b.kills, b.pauses, b.times,
	}
}

var tinyConfig = core.Config{
	Lease: 1000 * ms, Renewal: 400 * ms, Tenure: 50 * ms, Opening: time.Hour, Poll: 600 * ms, CallTimeout: 200 * ms, QueueLimit: 10,
}

// The clients of a microcosm, by process.

type tickets = [peers][callers]core.Ticket

func asks(owner core.Owner, options ...option) core.Ticket {
	t := core.Ticket{Owner: owner}
	for _, set := range options {
		set(&t)
	}
	return t
}

var (
	oneEach    = tickets{{asks(1)}, {asks(1)}}
	twoAndOne  = tickets{{asks(1), asks(2)}, {asks(1)}}
	twoEach    = tickets{{asks(1), asks(2)}, {asks(1), asks(2)}}
	fixedFirst = tickets{{asks(1, fixed(300*ms)), asks(2, fixed(700*ms))}, {asks(1)}}
	tries      = tickets{{asks(1, try), asks(2)}, {asks(1, try), asks(2, until(300*ms))}}
	readers    = tickets{{asks(1, shared), asks(2, shared)}, {asks(1, shared)}}
	writers    = tickets{{asks(1, shared), asks(2, shared)}, {asks(1)}}
	mixed      = tickets{{asks(1, shared), asks(2)}, {asks(1, shared), asks(2)}}
	oneFenced  = tickets{{asks(1, fenced)}, {asks(1, fenced)}}
	twoFaces   = tickets{{asks(1), asks(2, fenced)}, {asks(1, fenced)}}
	fourFaces  = tickets{{asks(1), asks(2, fenced)}, {asks(1, fenced), asks(2)}}
	fixedRead  = tickets{{asks(1, shared, fixed(300*ms)), asks(2, shared)}, {asks(1)}}
)

// scenarios are small worlds, each with other things that may happen in it.
func scenarios() []*scenario {
	plain := []*scenario{
		{name: "a fault on a prompt network", callers: oneEach, most: budget{faults: 1, times: 6}},
		{name: "four clients", callers: twoEach},
		{name: "lost and late replies", callers: oneEach, most: budget{faults: 2}},
		{name: "three clients and a fault", callers: twoAndOne, most: budget{faults: 1}},
		{name: "cancelled with a fault", callers: twoAndOne, most: budget{faults: 1, cancels: 1}},
		{name: "re-entered with a fault", callers: oneEach, most: budget{faults: 1, reentries: 1}},
		{name: "fixed leases with a fault", callers: fixedFirst, most: budget{faults: 1}},
		{name: "force-released", callers: twoAndOne, most: budget{forces: 1, faults: 1}},
		{name: "deleted", callers: twoAndOne, most: budget{flushes: 1, faults: 1}},
		{name: "killed", callers: twoAndOne, most: budget{kills: 1, faults: 1}},
		{name: "paused", callers: oneEach, most: budget{pauses: 2, faults: 1}},
		{name: "four clients and two faults", callers: twoEach, most: budget{faults: 2}},
		{name: "everything with fixed leases", callers: fixedFirst, most: budget{faults: 1, cancels: 1, reentries: 1}},
		{name: "lock actors crash", callers: twoAndOne, most: budget{crashes: 2, faults: 1}},
		{name: "Redis comes back empty", callers: twoAndOne, most: budget{restarts: 1, faults: 1}},
		{name: "Redis refuses", callers: twoAndOne, most: budget{errors: 2}},
		{name: "closed", callers: twoAndOne, most: budget{closes: 1, faults: 1, reentries: 1}},
		{name: "owners die", callers: twoAndOne, most: budget{deaths: 1, faults: 1, reentries: 1}},
		{name: "tries and waits", callers: tries, most: budget{faults: 1}},
	}
	fencing := []*scenario{
		{name: "a fault on a prompt network", callers: oneFenced, most: budget{faults: 1, times: 6}},
		{name: "four clients", callers: fourFaces},
		{name: "faults", callers: twoFaces, most: budget{faults: 2}},
		{name: "re-entered with a fault", callers: twoFaces, most: budget{faults: 1, reentries: 1}},
		{name: "deleted", callers: twoFaces, most: budget{flushes: 1, faults: 1, pauses: 1}},
	}
	fair := []*scenario{
		{name: "a fault on a prompt network", callers: oneEach, most: budget{faults: 1, times: 6}},
		{name: "four clients", callers: twoEach},
		{name: "faults", callers: twoAndOne, most: budget{faults: 1}},
		{name: "cancelled", callers: twoAndOne, most: budget{cancels: 1, deaths: 1}},
		{name: "killed", callers: twoAndOne, most: budget{kills: 1}},
		{name: "re-entered with fixed leases", callers: fixedFirst, most: budget{reentries: 1}},
		{name: "tries and waits", callers: tries, most: budget{}},
		{name: "Redis comes back empty", callers: twoAndOne, most: budget{restarts: 1}},
		{name: "closed and crashed", callers: twoAndOne, most: budget{closes: 1, crashes: 1}},
	}
	readWrite := []*scenario{
		{name: "a fault on a prompt network", callers: tickets{{asks(1, shared)}, {asks(1)}}, most: budget{faults: 1, times: 6}},
		{name: "readers", callers: readers, most: budget{faults: 1}},
		{name: "readers and a writer", callers: writers, most: budget{faults: 1}},
		{name: "readers and writers", callers: mixed},
		{name: "a writer reads too", callers: tickets{{asks(1)}, {asks(1, shared)}}, again: core.Shared, most: budget{reentries: 1, faults: 1}},
		{name: "cancelled and killed", callers: writers, most: budget{cancels: 1, kills: 1}},
		{name: "fixed leases", callers: fixedRead, most: budget{faults: 1}},
		{name: "deleted", callers: writers, most: budget{flushes: 1, restarts: 1}},
		{name: "owners die", callers: mixed, most: budget{deaths: 1}},
		{name: "re-entered and deleted", callers: tickets{{asks(1, shared)}, {asks(1)}}, again: core.Shared, most: budget{reentries: 1, flushes: 1, times: 6}},
	}
	multi := []*scenario{
		{name: "a fault on a prompt network", callers: oneEach, most: budget{faults: 1, times: 6}},
		{name: "four clients", callers: twoEach},
		{name: "faults", callers: twoAndOne, most: budget{faults: 1}},
		{name: "parts deleted", callers: oneEach, most: budget{flushes: 1, faults: 1}},
		{name: "re-entered with fixed leases", callers: fixedFirst, most: budget{reentries: 1, faults: 1}},
		{name: "killed and crashed", callers: twoAndOne, most: budget{kills: 1, crashes: 1}},
	}
	var all []*scenario
	add := func(name string, kind core.Kind, scenarios []*scenario, kinds ...model.Kind) {
		setup := &model.Setup{
			Kinds: kinds, Silence: 5 * sec, Announcement: 2 * tinyConfig.Poll,
			Name: func(o model.Owner) string { return names[o.Client] },
		}
		for _, s := range scenarios {
			s.name, s.kind, s.setup, s.config = fmt.Sprintf("%s, %s", name, s.name), kind, setup, &tinyConfig
			for p := range s.callers {
				for i := range s.callers[p] {
					s.callers[p][i].Fenced = s.callers[p][i].Fenced || kind.Parts // a MultiLock draws whatever its members have
				}
			}
			all = append(all, s)
		}
	}
	add("plain", core.Kind{Tokens: 1}, plain, model.Reentrant)
	add("plain and fenced", core.Kind{Tokens: 1}, fencing, model.Reentrant)
	add("fair", core.Kind{Queued: true}, fair, model.Fair)
	add("readwrite", core.Kind{Shares: true}, readWrite, model.ReadWrite)
	add("multi", core.Kind{Parts: true, Tokens: 1}, multi, model.Reentrant, model.Fenced)
	return all
}

var names = [peers]string{"p0", "p1"}
