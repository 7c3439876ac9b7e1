// Package conformance_test runs one suite of cases for every kind of lock, by the Go API and by message. Each kind is
// used by an ACL user with only the rights that docs/acl.md gives for it.
//
// Every case uses its own lock and processes, and the cases run in parallel. After each case, nothing of its lock may
// be left in Redis; after all of them, no goroutine. No case asserts a speed.
package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	registered "github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
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
		s.Do(t, "COPY", keyspace.Memory(""), keyspace.Memory(keyPrefix))
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
	needs func(kind) bool // nil: every kind
}

// briefCases need the end of a dead process's holds, or a hold that outlasts its TTL.
var briefCases = []conformance{
	{"a hold is kept beyond its TTL", keptAlive, nil},
	{"a crash while held", crash, kind.isLock},
	{"a hold is kept for the next holder too", keptAliveForTheNext, kind.isLock},
	{"a client is killed", killed, nil},
	{"a fixed lease is released early", leaseReleased, nil},
	{"a hold gets another lease", extended, nil},
	{"a waiting client is killed", waiterKilled, nil},
}

// cases are all cases, in the order in which they begin: the longest first.
var cases = append(briefCases, []conformance{
	{"the lease of a re-entry", leaseOfAReentry, kind.isLock},
	{"a fixed lease ends", leaseEnds, nil},
	{"mutual exclusion", mutualExclusion, nil},
	{"mutual exclusion with tries and waits", mutualExclusionByTries, nil},
	{"an inspection", inspection, kind.isLock},
	{"a re-entry", reentry, kind.isLock},
	{"a re-entry that is refused", reentryRefused, kind.isLock},
	{"a re-entry outlives the first hold", reentryOutOfOrder, kind.isLock},
	{"a re-entry is held to the end", reentryToTheEnd, kind.isLock},
	{"a try", try, nil},
	{"a wait that times out", waitTimesOut, nil},
	{"a wait that is granted", waitGranted, nil},
	{"cancelled before", cancelledBefore, nil},
	{"cancelled while waiting", cancelledWhileWaiting, nil},
	{"cancelled when granted", cancelledWhenGranted, nil},
	{"cancelled at random", cancelledAtRandom, nil},
	{"a lock is deleted", deleted, kind.isLock},
	{"a late release does not free the next holder's lock", lateRelease, nil},
	{"a second release does not free the next holder's lock", secondRelease, nil},
	{"transferred in one client", transferred, nil},
	{"transferred to another client", transferredElsewhere, nil},
	{"granted in order", order, nil},
	{"the death of a holder", deathOfAHolder, kind.ofActors},
	{"the death of a waiter", deathOfAWaiter, kind.ofActors},
	{"a forced release in the holder's process", forcedHere, kind.isLock},
	{"a forced release in another process", forcedElsewhere, kind.isLock},
	{"a forced release of a free lock", forcedFree, kind.isLock},
	{"a client is closed", closed, nil},
	{"tokens grow", tokensGrow, kind.hasTokens},
	{"tokens grow after a loss", tokensGrowAfterALoss, kind.hasTokens},
	{"tokens of a re-entry", tokensOfAReentry, kind.hasTokens},
	{"all permits or none", allOrNone, kind.hasPermits},
	{"one of the permits is lost", oneIsLost, kind.hasPermits},
}...)

func (k kind) ofActors() bool   { return k.byMessage } // the end of a goroutine is not noticed
func (k kind) hasTokens() bool  { return k.fenced }
func (k kind) isLock() bool     { return k.permits == 0 } // with re-entry, forced release, and a key to inspect or delete
func (k kind) hasPermits() bool { return k.permits > 0 }

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
			ctx, cancel := context.WithTimeout(context.Background(), 6*redistest.Limit) // each call has a shorter limit
			tr := &trial{T: t, kind: k, ctx: ctx, lock: redistest.Name(t) + "."}        // no name is a prefix of another
			t.Cleanup(func() {
				cancel()
				if !t.Failed() {
					redistest.Eventually(t, "nothing to be left in Redis", func() bool { return k.left(t, tr.lock) == 0 })
				}
			})
			a, b := k.open(t), k.open(t)
			if k.permits > 0 {
				set, err := a.semaphore(tr.lock).TrySetPermits(ctx, k.permits)
				locktest.OK(t, err)
				locktest.Equal(t, set, true, "set the number of permits: %v")
			}
			c.run(tr, a, b)
		})
	}
}

// kind is a kind of lock, as the suite uses it.
type kind struct {
	// systems is how many Systems it needs, each on a server of its own; home is the index of the one with the lock
	// actor.
	systems, home int
	// ordered: the lock is granted in the order of the requests, over all processes.
	ordered bool
	// fenced: the lock has tokens.
	fenced bool
	// polls: a waiter for one of the locks, while another is free, may have to wait until the next poll.
	polls bool
	// lock is the lock of a name.
	lock func(p *process, name string) *lockkeeper.Lock
	// message is the same lock by message; nil if messages cannot name it.
	message func(name string) *messages.Lock
	// lossKeys are suffixes of the name, one for each server: the loss of these keys is the loss of the lock; "-"
	// deletes nothing.
	lossKeys []string

	// rights is the name of the kind in docs/acl.md.
	rights   string
	topology redisio.Topology

	servers   []*redistest.Server
	sentinel  string // its URL; empty without Sentinel
	byMessage bool
	// brief: holds of a dead process outlast it by ttl; otherwise for longer than a busy machine needs.
	brief bool
	// permits is how many permits the expirable semaphore has that is used as a lock; 0 for a lock.
	permits int
}

// keyPrefix is the prefix of the users' keys.
const keyPrefix = "locks:"

// user is the name of the kind's ACL user.
func (k kind) user() string {
	return fmt.Sprint(strings.ReplaceAll(k.rights, " ", "-"), "-", k.topology)
}

// allow creates the kind's user, with the rights that it needs and no others.
func (k kind) allow(t *testing.T) {
	t.Helper()
	for _, r := range redisio.ACL() {
		if r.Kind != k.rights {
			continue
		}
		for _, s := range k.servers {
			rules := strings.Fields(r.Rules(k.topology, keyPrefix))
			locktest.OK(t, s.Do(t, append([]string{"ACL", "SETUSER", k.user(), "reset", "on", ">pw"}, rules...)...).Error())
		}
		return
	}
	t.Fatalf("there are no rights for %q", k.rights)
}

// url is the address of a server for the kind's user.
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

// wasRefusedNothing also notices refusals that the clients do not log, such as a refused SUBSCRIBE: they poll instead.
func (k kind) wasRefusedNothing(t *testing.T) {
	t.Helper()
	for _, s := range k.servers {
		log := locktest.Must(s.Do(t, "ACL", "LOG").ToArray())(t)
		for _, entry := range log {
			e, _ := entry.AsMap()
			what, user := e["object"], e["username"]
			object, _ := what.ToString()
			// Not every Redis knows the name of a client's library; rueidis sends it if it may.
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
	k.lossKeys = []string{""}
	return k
}

// inTopology has no message: messages are the same in every topology.
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
		lossKeys: []string{"fair"}, // the loss of one member loses all
	},
	"multi on two servers": {
		rights:  "MultiLock",
		systems: 2, home: 1, // the System of the member whose name sorts first
		fenced: true, polls: true, lock: multi,
		lossKeys: []string{"-", "fenced"},
	},
	"red": {
		rights:   "RedLock",
		systems:  3,
		lock:     func(p *process, name string) *lockkeeper.Lock { return p.red.Lock(name) },
		message:  func(name string) *messages.Lock { return &messages.Lock{Name: name, Kind: messages.Kind_KIND_RED} },
		lossKeys: []string{"-", "", ""}, // on a majority
	},
	"all permits": {
		rights:  "expirable semaphore",
		permits: 3,
		message: func(name string) *messages.Lock {
			return &messages.Lock{Name: name, Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}
		},
	},
}

// Each kind that requests name by a Lock is in the suite. Semaphores and latches have messages and tests of their own.
func TestConformance_HasEveryKind(t *testing.T) {
	conforming := map[messages.Kind]bool{}
	for _, k := range kinds {
		if k.message != nil {
			conforming[k.message("").Kind] = true
		}
	}
	for kind, row := range registered.Table {
		if row.HasOwners() && !conforming[kind] {
			t.Errorf("%v is not in the suite", kind)
		}
	}
}

// left counts the keys and channels that have the lock's name in them. The counters of the tokens stay for ever, so
// that no token is issued twice.
func (k kind) left(t testing.TB, lock string) (n int) {
	for _, s := range k.servers {
		for _, key := range s.Keys(t, "*"+lock+"*") {
			if !strings.HasPrefix(key, "redisson_lock_token:") && !(k.permits > 0 && k.keeps(t, s, key)) {
				n++
			}
		}
		channels := locktest.Must(s.Do(t, "PUBSUB", "CHANNELS", "*"+lock+"*").AsStrSlice())(t)
		n += len(channels)
	}
	return n
}

// delete deletes the lock from Redis.
func (k kind) delete(t testing.TB, lock string) {
	for i, s := range k.servers {
		if k.lossKeys[i] == "-" {
			continue
		}
		// A RedLock is granted by a majority; the others' votes may still be on their way.
		redistest.Eventually(t, "the key to be there and deleted", func() bool {
			n, err := s.Do(t, "DEL", keyPrefix+lock+k.lossKeys[i]).AsInt64()
			return err == nil && n == 1
		})
	}
}
