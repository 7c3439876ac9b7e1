package conformance_test

// The conformance suite over every kind of lock, by the Go API and by message. Each kind is used
// by an ACL user who has no right but those that docs/acl.md gives for it.

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/tests/conformance/suite"
)

func TestMain(m *testing.M) { locktest.Main(m) }

func TestConformance(t *testing.T) {
	if os.Getenv(flawVariable) != "" {
		suite.Limit = 4 * time.Second // what never comes need not be waited for so long
	}
	servers := redistest.SharedServers(t, 3)
	locktest.Ripen(t, servers...) // and their own clients are there before the suite counts goroutines
	for _, s := range servers {
		s.Do(t, "COPY", redisio.Memory(""), redisio.Memory(keyPrefix))
	}
	adapters := map[string]suite.Adapter{}
	for name, k := range kinds {
		k.servers = servers[:max(k.systems, 1)]
		switch k.topology {
		case redisio.InCluster:
			k.servers = redistest.Cluster(t, 1)
		case redisio.Sentinels:
			k.sentinel = redistest.Sentinel(t, servers[0])
		}
		k.allow(t)
		adapters[name] = k
		if k.byMessage = k.message != nil; k.byMessage {
			adapters[name+" by message"] = k
		}
	}
	suite.RunAll(t, adapters)
	for _, a := range adapters {
		a.(adapter).wasRefusedNothing(t)
	}
}

// wasRefusedNothing sees what the clients bear in silence, such as a refused SUBSCRIBE: they poll.
func (a adapter) wasRefusedNothing(t *testing.T) {
	t.Helper()
	for _, s := range a.servers {
		log, err := s.Do(t, "ACL", "LOG").ToArray()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range log {
			e, _ := entry.AsMap()
			what, user := e["object"], e["username"]
			object, _ := what.ToString()
			// Not every Redis knows the name of a client's library; rueidis tells it if it may.
			if name, _ := user.ToString(); name == a.user() && object != "client|setinfo" {
				t.Errorf("%s was refused %q", name, object)
			}
		}
	}
}

// adapter makes a kind of lock known to the suite.
type adapter struct {
	// systems is how many it takes, each on a server of its own; home is which of them has
	// the lock actor.
	systems, home int
	// ordered is granted in the order of the requests over all processes.
	ordered bool
	// fenced has tokens.
	fenced bool
	// lock is the lock of a name.
	lock func(p *process, name string) *lockkeeper.Lock
	// message is the same lock by message; nil if messages cannot name it.
	message func(name string) *messages.Lock
	// keys, one of them per server and the last again for further servers, are what to
	// delete so that the lock is gone. Default: its name, on every server.
	keys func(name string) []string

	// rights is what docs/acl.md calls the kind, in a topology.
	rights   string
	topology redisio.Topology

	servers   []*redistest.Server
	sentinel  string // its URL, if there is one
	byMessage bool
}

// keyPrefix is what the users' keys begin with.
const keyPrefix = "locks:"

// user is the name of the kind's ACL user.
func (a adapter) user() string {
	return fmt.Sprint(strings.ReplaceAll(a.rights, " ", "-"), "-", a.topology)
}

// allow makes the kind's user, who may do what it needs and nothing else.
func (a adapter) allow(t *testing.T) {
	t.Helper()
	for _, r := range redisio.ACL() {
		if r.Kind != a.rights {
			continue
		}
		for _, s := range a.servers {
			rules := strings.Fields(r.Rules(a.topology, keyPrefix))
			if err := s.Do(t, append([]string{"ACL", "SETUSER", a.user(), "reset", "on", ">pw"}, rules...)...).Error(); err != nil {
				t.Fatal(err)
			}
			s.Client(t) // before the suite counts goroutines
		}
		return
	}
	t.Fatalf("there are no rights for %q", a.rights)
}

// url is where the kind's user finds a server.
func (a adapter) url(server *redistest.Server) string {
	url := locktest.As(server, a.user(), "pw")
	if a.sentinel != "" {
		url = strings.ReplaceAll(url, server.Addr(), strings.TrimPrefix(a.sentinel, "redis://"))
	}
	return url
}

// ofKind is a lock of one System.
func ofKind(kind string, a adapter) adapter {
	a.lock = func(p *process, name string) *lockkeeper.Lock { return locktest.Kinds[kind](p.sites[0], name) }
	a.message = func(name string) *messages.Lock { return locktest.KindMessage(kind, name) }
	return a
}

// inTopology has no messages, which are the same everywhere.
func inTopology(on redisio.Topology, a adapter) adapter {
	a.topology, a.message = on, nil
	return a
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

var kinds = map[string]adapter{
	"plain":             ofKind("plain", adapter{rights: "plain and fenced"}),
	"fenced":            ofKind("fenced", adapter{fenced: true, rights: "plain and fenced"}),
	"fair":              ofKind("fair", adapter{ordered: true, rights: "fair"}),
	"write":             ofKind("write", adapter{rights: "read/write"}),
	"fair in a cluster": inTopology(redisio.InCluster, ofKind("fair", adapter{ordered: true, rights: "fair"})),
	"write by Sentinel": inTopology(redisio.Sentinels, ofKind("write", adapter{rights: "read/write"})),
	"multi": {
		rights: "MultiLock",
		fenced: true, lock: multi,
		message: func(name string) *messages.Lock {
			m := &messages.Lock{Kind: messages.Kind_KIND_MULTI}
			for _, member := range mixed {
				m.Members = append(m.Members, locktest.KindMessage(member[0], name+member[1]))
			}
			return m
		},
		keys: func(name string) []string { return []string{name + "fair"} }, // one of them is the end of all
	},
	"multi on two servers": {
		rights:  "MultiLock",
		systems: 2, home: 1, // that of the member whose name comes first
		fenced: true, lock: multi,
		keys: func(name string) []string { return []string{"", name + "fenced"} },
	},
	"red": {
		rights:  "RedLock",
		systems: 3,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.red.Lock(name) },
		message: func(name string) *messages.Lock { return &messages.Lock{Name: name, Kind: messages.Kind_KIND_RED} },
		keys:    func(name string) []string { return []string{"", name} }, // on a majority
	},
}

// Traits implements suite.Adapter.
func (a adapter) Traits() suite.Traits {
	traits := suite.Traits{TTL: locktest.Watchdog, Ordered: a.ordered}
	if !a.fenced {
		traits.Lacks = append(traits.Lacks, suite.Tokens)
	}
	if !a.byMessage { // a goroutine's end is not seen
		traits.Lacks = append(traits.Lacks, suite.Death)
	}
	return traits
}

// looking keeps the cases from using a server's own client together: it would start
// goroutines for that, which stay.
var looking sync.Mutex

// Left implements suite.Adapter: every key and every channel that has the lock's
// name in it. The counters of the tokens stay for ever, so that no token comes again.
func (a adapter) Left(t testing.TB, lock string) (left []string) {
	looking.Lock()
	defer looking.Unlock()
	for _, s := range a.servers {
		for _, key := range s.Keys(t, "*"+lock+"*") {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				left = append(left, key)
			}
		}
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", "*"+lock+"*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, channels...)
	}
	return left
}

// Delete implements suite.Adapter.
func (a adapter) Delete(t testing.TB, lock string) {
	looking.Lock()
	defer looking.Unlock()
	keys := []string{lock}
	if a.keys != nil {
		keys = a.keys(lock)
	}
	for i, s := range a.servers {
		if key := keys[min(i, len(keys)-1)]; key != "" {
			// A RedLock is granted by a majority; the others' votes may still be on their way.
			redistest.Eventually(t, key+" to be there and deleted", func() bool {
				n, err := s.Do(t, "DEL", keyPrefix+key).AsInt64()
				return err == nil && n == 1
			})
		}
	}
}
