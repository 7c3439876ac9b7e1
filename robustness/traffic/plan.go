// Package traffic is the client process: many workers acquire locks, check whether their
// holds are valid, and record it all.
package traffic

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Plan is the work of all clients of a run.
type Plan struct {
	// Config of the Systems.
	Watchdog, Poll, CallTimeout, Idle time.Duration
	// HandOffLimit is the default if it is 0.
	HandOffLimit time.Duration
	// Linger is how long plain and fenced locks may linger in a process without a holder. With Mixed they linger in some
	// processes, unless there is a Cluster.
	Linger time.Duration
	// Mixed: the processes differ in their configuration; see Variant.
	Mixed  bool
	Styles []Style
	// Far is the additional delay between the last process and Redis, in each direction. It has no
	// effect in a Cluster.
	Far time.Duration
	// Servers is the number of servers, which are independent unless they are a Cluster; 0 is
	// one server.
	Servers int
	Cluster bool
	// Replicas is the number of replicas of each server. A replica takes over when the server fails, in a Cluster by
	// itself, otherwise by the decision of three Sentinels.
	Replicas int
	// Lag is the lag of the replicas.
	Lag time.Duration
	// Confirm is Config.Replicas.
	Confirm int
	// BadHosts: the callbacks of some processes block or panic, as RandomHost draws them.
	BadHosts bool
	// Host is the host of all processes without BadHosts.
	Host Host
	// Busy is the number of busy goroutines in a process; none if its To is 0.
	Busy Count
	// Crowd is the number of requests of a crowd.
	Crowd Count
	// GrantWithin is how soon a request that can be granted must be, while nothing hinders; no lease may be lost then. 0
	// disables both checks.
	GrantWithin time.Duration
	// Operator: the first process uses no locks, and only executes commands.
	Operator bool
	// ServerRate is the speed of Redis's wall clock relative to real time; with 0 the clock is real,
	// and cannot be set.
	ServerRate float64
}

// Config is the Systems' configuration.
func (p *Plan) Config() lockkeeper.Config {
	return lockkeeper.Config{
		Watchdog: p.Watchdog, Poll: p.Poll, CallTimeout: p.CallTimeout, Idle: p.Idle,
		HandOffLimit: p.HandOffLimit, Linger: p.Linger, WaiterTimeout: p.Silence(), Replicas: p.Confirm,
	}
}

// Variant is the plan of one process. With Mixed its configuration differs from the others: a longer Watchdog, a more
// frequent Poll, a longer CallTimeout, another HandOffLimit, a Linger. A process with busy goroutines has a Watchdog in
// proportion to their number, since each of them delays all others.
func (p Plan) Variant(random *rand.Rand) Plan {
	if p.Mixed {
		p.Watchdog *= 1 + time.Duration(random.IntN(longestWatchdog))
		p.Poll /= 1 + time.Duration(random.IntN(3))
		p.CallTimeout *= 1 + time.Duration(random.IntN(4))
		p.HandOffLimit = []time.Duration{0, time.Millisecond, longestHandOffLimit}[random.IntN(3)]
		if !p.Cluster {
			p.Linger = []time.Duration{0, p.Watchdog / 10, p.Watchdog / 3}[random.IntN(3)]
		}
	}
	if p.Busy.To > 0 {
		n := p.Busy.Pick(random)
		p.Busy, p.Watchdog = Count{n, n}, time.Duration(n)*leasePerBusy
	}
	return p
}

// leasePerBusy is the Watchdog for each busy goroutine of a process.
const leasePerBusy = 50 * time.Millisecond

// longestWatchdog is how much longer a Variant's Watchdog is at most.
const longestWatchdog = 2

// defaultHandOffLimit is the default of Lockkeeper, and longestHandOffLimit the limit of some Variants.
const (
	defaultHandOffLimit = 5 * time.Millisecond
	longestHandOffLimit = 50 * time.Millisecond
)

// Turn is the longest hand-off limit that is in use.
func (p *Plan) Turn() time.Duration {
	if p.Mixed {
		return longestHandOffLimit
	}
	return cmp.Or(p.HandOffLimit, defaultHandOffLimit)
}

// Lease is the longest TTL that is in use.
func (p *Plan) Lease() time.Duration {
	lease := p.Watchdog
	if p.Mixed {
		lease *= longestWatchdog
	}
	lease = max(lease, time.Duration(p.Busy.To)*leasePerBusy)
	for _, s := range p.Styles {
		lease = max(lease, s.Fixed)
	}
	return lease
}

// Silence is how long a fair lock's waiter may be silent.
func (p *Plan) Silence() time.Duration { return 4 * p.Poll }

// Style is what a kind of worker does.
type Style struct {
	Kind Kind
	// Workers is the number of workers in each process.
	Workers int
	// Hold is how long a lock is held.
	Hold Range
	// Think is how long the worker pauses afterwards.
	Think Range
	// Fixed is the fixed lease of the holds; 0 for the watchdog.
	Fixed time.Duration
	// ToTheEnd keeps the hold until it is invalid.
	ToTheEnd bool
	// GiveUpShare is the share of requests with a limit: they try once, have a short wait limit, or are cancelled.
	GiveUpShare float64
	// GiveUpAfter is the time after which a request is cancelled.
	GiveUpAfter Range
}

// Kind is the kind of lock or of work of a worker.
type Kind string

// The kinds.
const (
	Plain     Kind = "plain"     // without re-entry
	Reentrant Kind = "reentrant" // with
	Fenced    Kind = "fenced"
	Fair      Kind = "fair"
	ReadWrite Kind = "readwrite"
	Multi     Kind = "multi"
	Actor     Kind = "actor"  // a plain lock, held by actors that may die
	Spread    Kind = "spread" // a RedLock, or a MultiLock over servers; needs three of them
	APIs      Kind = "apis"   // one name, plain and fenced, through every API; see apis.go
	Fresh     Kind = "fresh"  // plain locks of ever new names; see fresh.go
	Job       Kind = "job"    // locks with a minimum time; see job.go
	// Of synchronizers.
	Expirable Kind = "expirable" // an expirable semaphore
	Semaphore Kind = "semaphore"
	Latch     Kind = "latch"
	// In processes with busy goroutines; see computing.go.
	Computing Kind = "computing"
	Peer      Kind = "rueidislock" // the library for comparison
	Crowd     Kind = "crowd"       // many requests, cancelled at the same time; see crowd.go
	Foreign   Kind = "foreign"     // names that may be another application's keys; see foreign.go
	Edge      Kind = "edge"        // numbers near the edges; see edge.go
	GivingUp  Kind = "giving up"   // requests that give up in special ways; see giveup.go
)

// Kinds are the kinds of locks on one server.
var Kinds = []Kind{Plain, Reentrant, Fenced, Fair, ReadWrite, Multi, Actor, APIs}

// Count is the range of a random number, inclusive.
type Count struct{ From, To int }

// Pick draws a number.
func (c Count) Pick(random *rand.Rand) int { return c.From + random.IntN(c.To-c.From+1) }

// Range is the range of a random time, inclusive.
type Range struct{ From, To time.Duration }

// Pick draws a time from the range.
func (r Range) Pick(random *rand.Rand) time.Duration {
	return r.From + time.Duration(random.Int64N(int64(r.To-r.From)+1))
}
