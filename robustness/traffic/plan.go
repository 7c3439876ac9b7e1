// Package traffic is what a client process does: many workers that take locks, look
// whether they may trust them, and write it all down.
package traffic

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Plan is what all clients of a run do.
type Plan struct {
	// Config of the Systems, as far as it matters here.
	Watchdog, Poll, CallTimeout, Idle time.Duration
	// HandOffLimit is the default if it is 0.
	HandOffLimit time.Duration
	// Mixed: the processes differ in their configuration; see Variant.
	Mixed  bool
	Styles []Style
	// Far is how much longer the way from the last process to Redis is, in each direction. The
	// processes of a Cluster are all alike.
	Far time.Duration
	// Servers is how many there are, which know nothing of each other unless they are a
	// Cluster; 0 for one.
	Servers int
	Cluster bool
	// Replicas is how many each server has, of which one takes over when it fails: by itself in a
	// Cluster, else by the decision of three Sentinels. They are behind by Lag, and Confirm is how many
	// must have what is trusted: Config.Replicas.
	Replicas int
	Lag      time.Duration
	Confirm  int
	// BadHosts: the callbacks of some processes block or panic, as RandomHost draws them; else
	// those of all processes are as Host has them.
	BadHosts bool
	Host     Host
	// Busy is how many goroutines of a process compute; none if its To is 0.
	Busy Count
	// Crowd is how many requests a crowd has.
	Crowd Count
	// Awake is how soon a request that can be granted must be, while nothing hinders, and then no lease may be lost; 0
	// if that is not judged.
	Awake time.Duration
	// Operator: the first process uses no locks, and does only as it is told.
	Operator bool
	// ServerRate is how much faster than time Redis's wall clock runs; 0 leaves it alone,
	// and then it cannot be set.
	ServerRate float64
}

// Config is the Systems' configuration.
func (p *Plan) Config() lockkeeper.Config {
	return lockkeeper.Config{
		Watchdog: p.Watchdog, Poll: p.Poll, CallTimeout: p.CallTimeout, Idle: p.Idle, HandOffLimit: p.HandOffLimit, WaiterTimeout: p.Silence(), Replicas: p.Confirm,
	}
}

// Variant is the plan of a process whose configuration is not that of the others, if they
// are mixed: a longer Watchdog, a more frequent Poll, a longer CallTimeout, another HandOffLimit. A process that
// computes has a Watchdog in proportion to its goroutines, each of which delays all others.
func (p Plan) Variant(random *rand.Rand) Plan {
	if p.Mixed {
		p.Watchdog *= 1 + time.Duration(random.IntN(longestWatchdog))
		p.Poll /= 1 + time.Duration(random.IntN(3))
		p.CallTimeout *= 1 + time.Duration(random.IntN(4))
		p.HandOffLimit = []time.Duration{0, time.Millisecond, longestHandOffLimit}[random.IntN(3)]
	}
	if p.Busy.To > 0 {
		n := p.Busy.Pick(random)
		p.Busy, p.Watchdog = Count{n, n}, time.Duration(n)*leasePerBusy
	}
	return p
}

// leasePerBusy is the Watchdog of a process that computes, for each of its goroutines.
const leasePerBusy = 50 * time.Millisecond

// longestWatchdog is how much longer a Variant's Watchdog is at most.
const longestWatchdog = 2

// defaultHandOffLimit is Lockkeeper's, and longestHandOffLimit that of some Variants.
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
	// Workers is how many there are of it in each process.
	Workers int
	// Hold and Think are how long a lock is held, and how long it is left alone after.
	Hold, Think Range
	// Fixed is the fixed lease of the holds, 0 for the watchdog. ToTheEnd keeps the
	// hold until it is not trusted any more.
	Fixed    time.Duration
	ToTheEnd bool
	// Impatient is the share of requests that do not wait without limit: they try once,
	// wait for a little, or are cancelled after GiveUp.
	Impatient float64
	GiveUp    Range
}

// Kind is what a worker locks.
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
	Faces     Kind = "faces"  // one name, plain and fenced, through every face; see faces.go
	Fresh     Kind = "fresh"  // plain locks of ever new names; see fresh.go
	// Of synchronizers.
	Leased    Kind = "leased" // permits that expire
	Semaphore Kind = "semaphore"
	Latch     Kind = "latch"
	// Of processes that compute; see computing.go.
	Computing Kind = "computing"
	Peer      Kind = "rueidislock" // what they are compared with
	Crowd     Kind = "crowd"       // many requests, cancelled at once; see crowd.go
	Foreign   Kind = "foreign"     // names that may be another application's; see foreign.go
	Edge      Kind = "edge"        // numbers near the edges; see edge.go
	GivingUp  Kind = "giving up"   // requests that end in other ways than those of other kinds; see giveup.go
)

// Kinds are all of those on one server.
var Kinds = []Kind{Plain, Reentrant, Fenced, Fair, ReadWrite, Multi, Actor, Faces}

// Count is from where to where a random number lies.
type Count struct{ From, To int }

// Pick draws a number.
func (c Count) Pick(random *rand.Rand) int { return c.From + random.IntN(c.To-c.From+1) }

// Range is from where to where a random time lies.
type Range struct{ From, To time.Duration }

// Pick draws a time from the range.
func (r Range) Pick(random *rand.Rand) time.Duration {
	return r.From + time.Duration(random.Int64N(int64(r.To-r.From)+1))
}
