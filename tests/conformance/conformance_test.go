// Package conformance_test has one suite of cases for every kind of lock, by the Go API and by
// message. Each kind is used by an ACL user who has no right but those that docs/acl.md gives for
// it.
//
// Every case uses a lock and processes of its own, and the cases run beside each other. After
// each, nothing of its lock may be left in Redis; after all of them, no goroutine. No case
// asserts how fast something is.
package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "32") // the cases mainly wait
	locktest.Main(m)
}

func TestConformance(t *testing.T) {
	servers := redistest.SharedServers(t, 3)
	locktest.AgeServers(t, servers...)
	for _, s := range servers {
		s.Do(t, "COPY", redisio.Memory(""), redisio.Memory(keyPrefix))
	}
	for name, k := range kinds {
		k.servers = servers[:max(k.systems, 1)]
		switch k.topology {
		case redisio.InCluster:
			k.servers = redistest.Cluster(t, 1)
		case redisio.Sentinels:
			k.sentinel = redistest.Sentinel(t, servers[0])
		}
		k.allow(t)
		t.Cleanup(func() { k.wasRefusedNothing(t) })
		t.Run(name, k.conforms)
		if k.byMessage = k.message != nil; k.byMessage {
			t.Run(name+" by message", k.conforms)
		}
	}
}

// conformance is a case.
type conformance struct {
	name  string
	run   func(t *trial, a, b *process)
	needs func(kind) bool // nil: any kind has it
}

// briefCases see the end of what a dead process had, or a hold that goes on beyond its TTL.
var briefCases = []conformance{
	{"a hold is kept beyond its TTL", keptAlive, nil},
	{"a crash while held", crash, nil},
	{"a hold is kept for the next holder too", keptAliveForTheNext, nil},
	{"a client is killed", killed, nil},
	{"a fixed lease is released early", leaseReleased, nil},
	{"a waiting client is killed", waiterKilled, nil},
}

// cases are all there are, in the order in which they begin: the longest first.
var cases = append(briefCases, []conformance{
	{"the lease of a re-entry", leaseOfAReentry, nil},
	{"a fixed lease ends and is told", leaseEnds, nil},
	{"mutual exclusion", mutualExclusion, nil},
	{"mutual exclusion with tries and waits", mutualExclusionByTries, nil},
	{"a state as it is told", inspection, nil},
	{"a re-entry", reentry, nil},
	{"a re-entry that is refused", reentryRefused, nil},
	{"a re-entry outlives the first hold", reentryOutOfOrder, nil},
	{"a re-entry is held to the end", reentryToTheEnd, nil},
	{"a try", try, nil},
	{"a wait that is over", waitOver, nil},
	{"a wait that is rewarded", waitRewarded, nil},
	{"cancelled before", cancelledBefore, nil},
	{"cancelled while waiting", cancelledWhileWaiting, nil},
	{"cancelled when granted", cancelledWhenGranted, nil},
	{"cancelled at random", cancelledAtRandom, nil},
	{"a lock is deleted", deleted, nil},
	{"a late release does not free the next holder's lock", lateRelease, nil},
	{"a second release does not free the next holder's lock", secondRelease, nil},
	{"passed on in one client", passedOn, nil},
	{"passed on to another client", passedOnElsewhere, nil},
	{"granted in order", order, nil},
	{"the death of a holder", deathOfAHolder, kind.ofActors},
	{"the death of a waiter", deathOfAWaiter, kind.ofActors},
	{"a forced release is told here", forcedHere, nil},
	{"a forced release is told elsewhere", forcedElsewhere, nil},
	{"a forced release of a free lock", forcedFree, nil},
	{"a client is closed", closed, nil},
	{"tokens grow", tokensGrow, kind.hasTokens},
	{"tokens grow after a loss", tokensGrowAfterALoss, kind.hasTokens},
	{"tokens of a re-entry", tokensOfAReentry, kind.hasTokens},
}...)

func (k kind) ofActors() bool  { return k.byMessage } // a goroutine's end is not seen
func (k kind) hasTokens() bool { return k.fenced }

func (k kind) conforms(t *testing.T) {
	t.Parallel()
	for i, c := range cases {
		k := k
		k.brief = i < len(briefCases)
		if c.needs != nil && !c.needs(k) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 6*redistest.Limit) // what should end sooner is seen to
			tr := &trial{T: t, kind: k, ctx: ctx, lock: redistest.Name(t) + "."}        // no name begins as another does
			t.Cleanup(func() {
				cancel()
				if !t.Failed() {
					redistest.Eventually(t, "nothing to be left in Redis", func() bool { return k.left(t, tr.lock) == 0 })
				}
			})
			c.run(tr, k.open(t), k.open(t))
		})
	}
}

// A kind of lock, as the suite uses it.
type kind struct {
	// systems is how many it takes, each on a server of its own; home is which of them has
	// the lock actor.
	systems, home int
	// ordered is granted in the order of the requests over all processes.
	ordered bool
	// fenced has tokens.
	fenced bool
	// polls: who waits for one of the locks, while another is free, may have to wait until the next poll.
	polls bool
	// lock is the lock of a name.
	lock func(p *process, name string) *lockkeeper.Lock
	// message is the same lock by message; nil if messages cannot name it.
	message func(name string) *messages.Lock
	// gone, one of them per server, is what to add to the name for a key whose loss is that of
	// the lock; "-" deletes nothing.
	gone []string

	// rights is what docs/acl.md calls the kind, in a topology.
	rights   string
	topology redisio.Topology

	servers   []*redistest.Server
	sentinel  string // its URL, if there is one
	byMessage bool
	// brief: what a process had outlives it by ttl; otherwise for longer than a busy machine may take.
	brief bool
}

// keyPrefix is what the users' keys begin with.
const keyPrefix = "locks:"

// user is the name of the kind's ACL user.
func (k kind) user() string {
	return fmt.Sprint(strings.ReplaceAll(k.rights, " ", "-"), "-", k.topology)
}

// allow makes the kind's user, who may do what it needs and nothing else.
func (k kind) allow(t *testing.T) {
	t.Helper()
	for _, r := range redisio.ACL() {
		if r.Kind != k.rights {
			continue
		}
		for _, s := range k.servers {
			rules := strings.Fields(r.Rules(k.topology, keyPrefix))
			if err := s.Do(t, append([]string{"ACL", "SETUSER", k.user(), "reset", "on", ">pw"}, rules...)...).Error(); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	t.Fatalf("there are no rights for %q", k.rights)
}

// url is where the kind's user finds a server.
func (k kind) url(server *redistest.Server, client string) string {
	url := locktest.URLAs(server, k.user(), "pw")
	if k.sentinel != "" {
		url = strings.ReplaceAll(url, server.Addr(), strings.TrimPrefix(k.sentinel, "redis://"))
	}
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	return url + mark + "client_name=" + client
}

// wasRefusedNothing sees what the clients bear in silence, such as a refused SUBSCRIBE: they poll.
func (k kind) wasRefusedNothing(t *testing.T) {
	t.Helper()
	for _, s := range k.servers {
		log, err := s.Do(t, "ACL", "LOG").ToArray()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range log {
			e, _ := entry.AsMap()
			what, user := e["object"], e["username"]
			object, _ := what.ToString()
			// Not every Redis knows the name of a client's library; rueidis tells it if it may.
			if name, _ := user.ToString(); name == k.user() && object != "client|setinfo" {
				t.Errorf("%s was refused %q", name, object)
			}
		}
	}
}

// ofOneSystem is a lock of one System.
func ofOneSystem(name string, k kind) kind {
	k.lock = func(p *process, lock string) *lockkeeper.Lock { return locktest.Kinds[name](p.sites[0], lock) }
	k.message = func(lock string) *messages.Lock { return locktest.KindMessage(name, lock) }
	k.gone = []string{""}
	return k
}

// inTopology has no messages, which are the same everywhere.
func inTopology(on redisio.Topology, k kind) kind {
	k.topology, k.message = on, nil
	return k
}

// mixed are the members of a MultiLock: their kinds, and how their names end.
var mixed = [][2]string{{"write", "write"}, {"fenced", "fenced"}, {"plain", "plain"}, {"fair", "fair"}, {"fenced", "more"}}

// multi spreads them over the Systems of a process.
func multi(p *process, name string) *lockkeeper.Lock {
	var locks []*lockkeeper.Lock
	for i, m := range mixed {
		locks = append(locks, locktest.Kinds[m[0]](p.sites[i%len(p.sites)], name+m[1]))
	}
	return lockkeeper.MultiLock(locks...)
}

var kinds = map[string]kind{
	"plain":             ofOneSystem("plain", kind{rights: "plain and fenced"}),
	"fenced":            ofOneSystem("fenced", kind{fenced: true, rights: "plain and fenced"}),
	"fair":              ofOneSystem("fair", kind{ordered: true, rights: "fair"}),
	"write":             ofOneSystem("write", kind{rights: "read/write"}),
	"fair in a cluster": inTopology(redisio.InCluster, ofOneSystem("fair", kind{ordered: true, rights: "fair"})),
	"write by Sentinel": inTopology(redisio.Sentinels, ofOneSystem("write", kind{rights: "read/write"})),
	"multi": {
		rights: "MultiLock",
		fenced: true, polls: true, lock: multi,
		message: func(name string) *messages.Lock {
			m := &messages.Lock{Kind: messages.Kind_KIND_MULTI}
			for _, member := range mixed {
				m.Members = append(m.Members, locktest.KindMessage(member[0], name+member[1]))
			}
			return m
		},
		gone: []string{"fair"}, // one of them is the end of all
	},
	"multi on two servers": {
		rights:  "MultiLock",
		systems: 2, home: 1, // that of the member whose name comes first
		fenced: true, polls: true, lock: multi,
		gone: []string{"-", "fenced"},
	},
	"red": {
		rights:  "RedLock",
		systems: 3,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.red.Lock(name) },
		message: func(name string) *messages.Lock { return &messages.Lock{Name: name, Kind: messages.Kind_KIND_RED} },
		gone:    []string{"-", "", ""}, // on a majority
	},
}

// left counts the keys and channels that have the lock's name in them. The counters of the
// tokens stay for ever, so that no token comes again.
func (k kind) left(t testing.TB, lock string) (n int) {
	for _, s := range k.servers {
		for _, key := range s.Keys(t, "*"+lock+"*") {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				n++
			}
		}
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", "*"+lock+"*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		n += len(channels)
	}
	return n
}

// delete deletes the lock from Redis, behind the processes' backs.
func (k kind) delete(t testing.TB, lock string) {
	for i, s := range k.servers {
		if k.gone[i] == "-" {
			continue
		}
		// A RedLock is granted by a majority; the others' votes may still be on their way.
		redistest.Eventually(t, "the key to be there and deleted", func() bool {
			n, err := s.Do(t, "DEL", keyPrefix+lock+k.gone[i]).AsInt64()
			return err == nil && n == 1
		})
	}
}
