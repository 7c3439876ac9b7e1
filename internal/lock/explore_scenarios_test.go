package lock_test

import (
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// scenario is a small world: its callers, by process, and the faults that may happen. network stands for the faults of
// messages, and errs for the two ways in which Redis refuses.
type scenario struct {
	name, callers string
	may           tally
	again         machine.Mode
	times         int
	leases        []time.Duration
	// begin are the callers that ask first, each before the next: "10" is the first caller of the second process, "10+"
	// its re-entry, and "10-" its withdrawal.
	begin string
}

const (
	network = lost
	errs    = loading
)

// The callers of scenarios: the number of the owner, and the options of its request.
const (
	oneEach        = "1 | 1"
	twoAndOne      = "1, 2 | 1"
	twoEach        = "1, 2 | 1, 2"
	fixedFirst     = "1 fixed=300ms, 2 fixed=700ms | 1"
	trying         = "1 try, 2 | 1 try, 2 until=300ms"
	readers        = "1 shared, 2 shared | 1 shared"
	writers        = "1 shared, 2 shared | 1"
	mixed          = "1 shared, 2 | 1 shared, 2"
	oneFenced      = "1 fenced | 1 fenced"
	someFenced     = "1, 2 fenced | 1 fenced"
	fourSomeFenced = "1, 2 fenced | 1 fenced, 2"
	fixedRead      = "1 shared fixed=300ms, 2 shared | 1"
	atLeast        = "1 atleast=300ms, 2 | 1 atleast=700ms"
	besideMembers  = "1 | 1: 1 | 2: 1, 2" // a MultiLock, and processes that want its first or its second member
)

// scenariosOf are the scenarios of each kind of lock.
var scenariosOf = []struct {
	name      string
	features  lock.Features
	parts     []redismodel.Kind
	linger    time.Duration
	scenarios []scenario
}{
	{name: "plain", features: lock.Features{Tokens: 1, WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain}, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: oneEach, may: tally{network: 1}, times: 6},
		{name: "four clients", callers: twoEach},
		{name: "lost and late replies", callers: oneEach, may: tally{network: 2}},
		{name: "three clients and a fault", callers: twoAndOne, may: tally{network: 1}},
		{name: "cancelled with a fault", callers: twoAndOne, may: tally{network: 1, cancels: 1}},
		{name: "re-entered with a fault", callers: oneEach, may: tally{network: 1, reentry: 1}},
		{name: "fixed leases with a fault", callers: fixedFirst, may: tally{network: 1}},
		{name: "force-released", callers: twoAndOne, may: tally{forced: 1, network: 1}},
		{name: "deleted", callers: twoAndOne, may: tally{deleted: 1, network: 1}},
		{name: "killed", callers: twoAndOne, may: tally{kill: 1, network: 1}},
		{name: "paused", callers: oneEach, may: tally{paused: 2, network: 1}},
		{name: "four clients and two faults", callers: twoEach, may: tally{network: 2}},
		{name: "everything with fixed leases", callers: fixedFirst, may: tally{network: 1, cancels: 1, reentry: 1}},
		{name: "lock actors crash", callers: twoAndOne, may: tally{crash: 2, network: 1}},
		{name: "Redis comes back empty", callers: twoAndOne, may: tally{restart: 1, network: 1}},
		{name: "Redis refuses", callers: twoAndOne, may: tally{errs: 2}},
		{name: "closed", callers: twoAndOne, may: tally{closing: 1, network: 1, reentry: 1}},
		{name: "owners die", callers: twoAndOne, may: tally{death: 1, network: 1, reentry: 1}},
		{name: "tries and waits", callers: trying, may: tally{network: 1}},
		{name: "suspected, ensured and deleted", callers: twoAndOne, may: tally{suspects: 1, ensures: 1, deleted: 1}},
		{name: "an actor fails for good", callers: twoAndOne, may: tally{actorFails: 1, network: 1}},
		{name: "a foreign client comes", callers: twoAndOne, may: tally{foreign: 1, network: 1}},
		{name: "withdrawn in every way", callers: "1, 2 until=300ms | 1, 2", begin: "00 10", may: tally{cancels: 1, closing: 1, death: 1}, times: 8},
		{name: "yielding to others", callers: twoEach, begin: "00 10 01", may: tally{foreign: 1, cancels: 1}, times: 8},
		{name: "minimum times", callers: atLeast, may: tally{network: 2}},
		{name: "minimum times of what ends otherwise", callers: atLeast, may: tally{network: 1, closing: 1, death: 1, kill: 1, reentry: 1}},
		{name: "extended", callers: "1, 2 | 1", may: tally{extends: 2, network: 1, crash: 1}, leases: []time.Duration{700 * ms, 0}},
		{name: "extended for long", callers: twoAndOne, may: tally{extends: 2, network: 2}, leases: []time.Duration{2 * sec, 700 * ms}},
		{name: "extended on a prompt network", callers: oneEach, may: tally{extends: 2, network: 1}, leases: []time.Duration{700 * ms, 0}, times: 6},
		{name: "extended and ensured", callers: fixedFirst, may: tally{extends: 2, network: 1, ensures: 1}, leases: []time.Duration{0, 2 * sec}, times: 6},
		{name: "extended and refused", callers: fixedFirst, may: tally{extends: 2, errs: 1, closing: 1, reentry: 1}, leases: []time.Duration{2 * sec, 0}},
	}},
	{name: "plain and fenced", features: lock.Features{Tokens: 1, WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain}, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: oneFenced, may: tally{network: 1}, times: 6},
		{name: "four clients", callers: fourSomeFenced},
		{name: "faults", callers: someFenced, may: tally{network: 2}},
		{name: "re-entered with a fault", callers: someFenced, may: tally{network: 1, reentry: 1}},
		{name: "deleted", callers: someFenced, may: tally{deleted: 1, network: 1, paused: 1}},
	}},
	{name: "plain that lingers", features: lock.Features{WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain}, linger: 300 * ms, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: twoAndOne, may: tally{network: 1}, times: 6},
		{name: "four clients", callers: twoEach},
		{name: "three clients and a fault", callers: "1, 2, 3 | 1", may: tally{network: 1}},
		{name: "cancelled and re-entered", callers: twoAndOne, may: tally{cancels: 1, reentry: 1, network: 1}},
		{name: "fixed leases with a fault", callers: "1, 2 fixed=700ms, 3 | 1", may: tally{network: 1}},
		{name: "force-released", callers: twoAndOne, may: tally{forced: 1, network: 1}},
		{name: "deleted and suspected", callers: twoAndOne, may: tally{deleted: 1, suspects: 1}},
		{name: "killed", callers: twoAndOne, may: tally{kill: 1, network: 1}},
		{name: "paused", callers: twoAndOne, may: tally{paused: 2, network: 1}},
		{name: "lock actors crash, or fail for good", callers: twoAndOne, may: tally{crash: 1, actorFails: 1}},
		{name: "Redis comes back empty", callers: twoAndOne, may: tally{restart: 1, network: 1}},
		{name: "Redis refuses", callers: twoAndOne, may: tally{errs: 2}},
		{name: "closed, and owners die", callers: twoAndOne, may: tally{closing: 1, death: 1, network: 1}},
		{name: "tries and waits", callers: trying, may: tally{network: 1}},
		{name: "a foreign client comes", callers: twoAndOne, may: tally{foreign: 1, network: 1}},
		{name: "minimum times", callers: atLeast, may: tally{network: 1, closing: 1}},
		{name: "extended", callers: twoAndOne, may: tally{extends: 2, network: 1}, leases: []time.Duration{700 * ms, 0}},
	}},
	{name: "fenced that lingers", features: lock.Features{Tokens: 1, WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain}, linger: 300 * ms, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: "1 fenced, 2 fenced | 1 fenced", may: tally{network: 1}, times: 6},
		{name: "four clients", callers: fourSomeFenced},
		{name: "faults", callers: someFenced, may: tally{network: 2}},
	}},
	{name: "members that linger", features: lock.Features{Parts: true, WaitQueue: true}, linger: 300 * ms,
		parts: []redismodel.Kind{redismodel.Plain, redismodel.Plain}, scenarios: []scenario{
			{name: "a fault", callers: "1 | 1: 1, 2 | 2: 1", may: tally{network: 1}, times: 8},
			{name: "tries", callers: "1 try, 2 | 1: 1, 2 | 2: 1 try", times: 8},
			{name: "cancelled and closed", callers: besideMembers, begin: "10 20", may: tally{cancels: 1, closing: 1}, times: 8},
		}},
	{name: "fair", features: lock.Features{Fair: true}, parts: []redismodel.Kind{redismodel.Fair}, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: oneEach, may: tally{network: 1}, times: 6},
		{name: "four clients", callers: twoEach},
		{name: "faults", callers: twoAndOne, may: tally{network: 1}},
		{name: "cancelled", callers: twoAndOne, may: tally{cancels: 1, death: 1}},
		{name: "commands carried out in another order", callers: twoAndOne, begin: "00 10 01", may: tally{outOfOrder: 2, cancels: 1, closing: 1}},
		{name: "commands in another order on a prompt network", callers: twoAndOne, begin: "00", may: tally{outOfOrder: 2, cancels: 1, death: 1, closing: 1}, times: 8},
		{name: "killed", callers: twoAndOne, may: tally{kill: 1}},
		{name: "re-entered with fixed leases", callers: fixedFirst, may: tally{reentry: 1}},
		{name: "extended", callers: twoAndOne, may: tally{extends: 2, network: 1}, leases: []time.Duration{300 * ms, 2 * sec}},
		{name: "tries and waits", callers: trying},
		{name: "Redis comes back empty", callers: twoAndOne, may: tally{restart: 1}},
		{name: "closed and crashed", callers: twoAndOne, may: tally{closing: 1, crash: 1}},
		{name: "an actor fails for good", callers: twoAndOne, may: tally{actorFails: 1}},
		{name: "a foreign client comes", callers: twoAndOne, may: tally{foreign: 1, suspects: 1}},
		{name: "withdrawn in time", callers: "1, 2 until=300ms | 1", begin: "00 10", may: tally{cancels: 1, closing: 1}, times: 8},
		{name: "minimum times", callers: atLeast, may: tally{network: 1, closing: 1}},
	}},
	{name: "readwrite", features: lock.Features{Shares: true, WaitQueue: true}, parts: []redismodel.Kind{redismodel.ReadWrite}, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: "1 shared | 1", may: tally{network: 1}, times: 6},
		{name: "readers", callers: readers, may: tally{network: 1}},
		{name: "readers and a writer", callers: writers, may: tally{network: 1}},
		{name: "readers and writers", callers: mixed},
		{name: "a writer reads too", callers: "1 | 1 shared", again: machine.Shared, may: tally{reentry: 1, network: 1}},
		{name: "cancelled and killed", callers: writers, may: tally{cancels: 1, kill: 1}},
		{name: "fixed leases", callers: fixedRead, may: tally{network: 1}},
		{name: "extended", callers: readers, may: tally{extends: 2, network: 1}, leases: []time.Duration{300 * ms, 2 * sec}},
		{name: "extended with a fixed lease", callers: fixedRead, may: tally{extends: 2, network: 1}, leases: []time.Duration{0, 300 * ms}},
		{name: "deleted", callers: writers, may: tally{deleted: 1, restart: 1}},
		{name: "owners die", callers: mixed, may: tally{death: 1}},
		{name: "re-entered and deleted", callers: "1 shared | 1", again: machine.Shared, may: tally{reentry: 1, deleted: 1}, times: 6},
		{name: "a foreign client comes", callers: writers, may: tally{foreign: 1, ensures: 1, suspects: 1}},
		{name: "a writer withdraws", callers: "1, 2 shared | 1 shared", begin: "10 00 01", may: tally{cancels: 1, death: 1}, times: 8},
		{name: "a writer withdraws before others", callers: "1 shared | 1, 2 shared | 1 shared", begin: "00 10 11 20", may: tally{cancels: 1, death: 1}, times: 8},
		{name: "a writer's wait is over", callers: "1 shared | 1 until=300ms | 1 shared", begin: "00 10 20", times: 8},
		{name: "a writer's process closes", callers: "1 shared | 1, 2 | 1 shared", begin: "00 10 20", may: tally{closing: 1}, times: 8},
		{name: "a transfer to a reader is late", callers: "1 shared, 2, 3 shared | 1 | 1", begin: "10 00 20 01 02 10+ 00-", again: machine.Shared, may: tally{cancels: 2}, times: 2},
		{name: "a writer yields", callers: "1, 2 shared | 1, 2 shared", begin: "10 00 01", times: 4},
	}},
	{name: "multi", features: lock.Features{Parts: true, Tokens: 1, WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain, redismodel.Fenced}, scenarios: []scenario{
		{name: "a fault on a prompt network", callers: oneEach, may: tally{network: 1}, times: 6},
		{name: "four clients", callers: twoEach},
		{name: "faults", callers: twoAndOne, may: tally{network: 1}},
		{name: "extended", callers: oneEach, may: tally{extends: 2, network: 1, deleted: 1}, leases: []time.Duration{300 * ms, 2 * sec}},
		{name: "parts deleted", callers: oneEach, may: tally{deleted: 1, network: 1, suspects: 1}},
		{name: "re-entered with fixed leases", callers: fixedFirst, may: tally{reentry: 1, network: 1}},
		{name: "killed and crashed", callers: twoAndOne, may: tally{kill: 1, crash: 1}},
		{name: "closed, or withdrawn in time", callers: "1 until=300ms, 2 | 1", begin: "10 00", may: tally{closing: 1, cancels: 1}, times: 8},
		{name: "minimum times", callers: atLeast, may: tally{network: 1, closing: 1}},
	}},
	{name: "multi and its members", features: lock.Features{Parts: true, WaitQueue: true}, parts: []redismodel.Kind{redismodel.Plain, redismodel.Plain}, scenarios: []scenario{
		{name: "cancelled", callers: besideMembers, begin: "10 20 00", may: tally{cancels: 1}, times: 8},
		{name: "its wait is over", callers: "1 until=300ms | 1: 1 | 2: 1, 2", begin: "10 20 00", times: 8},
		{name: "owners die", callers: besideMembers, begin: "10 20 00", may: tally{death: 1}, times: 8},
		{name: "closed", callers: besideMembers, begin: "10 20 00", may: tally{closing: 1}, times: 8},
		{name: "killed", callers: besideMembers, begin: "10 20 00", may: tally{kill: 1}, times: 8},
		{name: "Redis comes back empty", callers: besideMembers, begin: "10 20 00", may: tally{restart: 1}, times: 4},
		{name: "on a slow network", callers: besideMembers, may: tally{cancels: 1, network: 1}},
	}},
}

var tinyConfig = machine.Config{
	Watchdog: 1000 * ms, Renewal: 400 * ms, HandOffLimit: 50 * ms, ForcedYield: time.Hour, Poll: 600 * ms, CallTimeout: 200 * ms, QueueLimit: 10,
}

// waitQueueOf are the settings of the wait queue in Redis.
func waitQueueOf(c *machine.Config) redismodel.WaitQueue {
	return redismodel.WaitQueue{OpenTime: c.OpenTime(), OneServer: true}
}

// scenarios returns the settings of all small worlds.
func scenarios() (all []*setting) {
	for _, of := range scenariosOf {
		for _, s := range of.scenarios {
			set := &setting{
				name: of.name + ", " + s.name, features: of.features, config: tinyConfig, limits: s.may, again: s.again, times: s.times, leases: s.leases,
				setup: redismodel.Setup{Kinds: of.parts, WaiterTimeout: 5 * sec, WaitQueue: waitQueueOf(&tinyConfig), Name: redismodel.Owner.String},
			}
			set.config.Linger = of.linger
			for _, f := range []fault{late, onePart, lostMessage} {
				set.limits[f] = s.may[network]
			}
			set.limits[rejected] = s.may[errs]
			for i, process := range strings.Split(s.callers, " | ") {
				set.processCount++
				part, requests, alone := strings.Cut(process, ": ")
				if alone {
					set.members[i], process = int(machinetest.Number(part)), requests
				}
				for c, one := range strings.Split(process, ", ") {
					words := strings.Fields(one)
					req := machinetest.Request(0, append(words[1:], "owner="+words[0])...)
					req.Fenced = req.Fenced || of.features.Parts && !alone // a MultiLock draws a token of each member that has a counter
					set.callers[i][c] = req
				}
			}
			for _, caller := range strings.Fields(s.begin) {
				asks := map[string]action{"": acquire, "+": reenter, "-": cancel}[caller[2:]]
				set.begin = append(set.begin, move{action: asks, p: int8(caller[0] - '0'), i: int8(caller[1] - '0')})
			}
			all = append(all, set)
		}
	}
	return all
}
