package redisio

import (
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Topology is the kind of deployment that a client talks to.
type Topology uint8

// The topologies.
const (
	OneServer Topology = iota
	Sentinels
	InCluster
)

// clientCommands are the commands of each topology that the client sends itself: those that send the scripts,
// and those that find the servers (the client also asks a single server for a cluster) and check that
// they are alive.
var clientCommands = map[Topology][]string{
	OneServer: {"cluster|shards", "cluster|slots", "eval", "evalsha", "ping", "pttl", "subscribe"},
	Sentinels: {"role"},
	InCluster: {"asking", "pubsub|shardnumsub", "spublish", "ssubscribe"},
}

// SentinelRules are the ACL rules for the client's user on the Sentinels themselves.
const SentinelRules = "+ping +sentinel|get-master-addr-by-name +sentinel|master +sentinel|sentinels +subscribe +unsubscribe &*"

// replicaRules are the ACL rules for clients that wait for replicas.
const replicaRules = "+wait"

// Rights lists the commands, keys and channels that the ACL user of a client needs for a kind of lock.
type Rights struct {
	// Kind names the kind, such as "fair" or "MultiLock"; "all kinds" for the last element of the result of ACL.
	Kind           string
	scripts        []*scripts.Script
	keys, channels []derived // besides the key of the lock's name
}

// derived is a pattern of keys or channels that are derived from the name of a lock.
type derived struct {
	from func(name string) string
	more string // suffix
	// ofClient: the pattern is derived from the UUID of a client instead of a name.
	ofClient bool
}

// system is what every kind needs: the record of the process, the wait queue, which most kinds use and doctor always
// tries, the turn channel of the process, and the channel of the clients that use a wait queue.
var system = Rights{
	scripts:  []*scripts.Script{scripts.SystemRenew, scripts.SystemRemove, scripts.SystemInspect, scripts.SystemList},
	keys:     []derived{{from: keyspace.Systems, more: "*"}, {from: keyspace.WaitQueue}, {from: keyspace.WaitOrder}},
	channels: []derived{{from: keyspace.TurnChannel, ofClient: true}, {from: keyspace.Waiters}},
}

// ofForm returns the rights for the locks of a form.
func ofForm(f *forms.Form) Rights {
	r := Rights{Kind: f.Name, scripts: f.Scripts}
	for _, key := range f.Keys() {
		r.keys = append(r.keys, derived{from: key.From, more: key.More})
	}
	for _, channel := range f.Channels() {
		r.channels = append(r.channels, derived{from: channel.From, more: channel.More})
	}
	return system.and(r)
}

var plain = ofForm(forms.Plain)

// synchronizers are the rights for semaphores and latches.
var synchronizers = []Rights{
	system.and(Rights{
		Kind: "semaphore",
		scripts: []*scripts.Script{
			scripts.SemaphoreAcquire, scripts.SemaphoreAdd, scripts.SemaphoreYield, scripts.SemaphoreSet, scripts.SemaphoreDrain,
			scripts.SemaphoreInspect, scripts.SynchronizerDelete, scripts.ForgetCommand,
		},
		keys:     []derived{{from: keyspace.Calls, more: ":*"}},
		channels: []derived{{from: keyspace.PermitsChannel}},
	}),
	system.and(Rights{
		Kind: "expirable semaphore",
		scripts: []*scripts.Script{
			scripts.ExpirableAcquire, scripts.ExpirableRelease, scripts.ExpirableRenew, scripts.ExpirableSet, scripts.ExpirableInspect,
		},
		keys:     []derived{{from: keyspace.Calls, more: ":*"}, {from: keyspace.Taken}},
		channels: []derived{{from: keyspace.PermitsChannel}},
	}),
	system.and(Rights{
		Kind: "latch",
		scripts: []*scripts.Script{
			scripts.LatchSet, scripts.LatchCountDown, scripts.LatchInspect, scripts.SynchronizerDelete, scripts.ForgetCommand,
		},
		keys:     []derived{{from: keyspace.Calls, more: ":*"}, {from: keyspace.Counted}},
		channels: []derived{{from: keyspace.LatchChannel}},
	}),
}

// singleton contains the rights for singletons, whose candidates hold a fenced lock.
var singleton = plain.and(Rights{
	Kind:    "singleton",
	scripts: []*scripts.Script{scripts.SingletonSet, scripts.SingletonInspect},
	keys:    []derived{{from: keyspace.Whereabouts}},
})

// ACL returns the rights for each kind of lock on one Redis, for MultiLocks of these, for RedLocks and for singletons,
// for each synchronizer, and for all of them together.
func ACL() []Rights {
	multi, all := Rights{scripts: []*scripts.Script{scripts.AcquireAll, scripts.YieldAll}}, Rights{}
	var kinds []Rights
	for _, f := range forms.All {
		kind := ofForm(f)
		if kinds, all = append(kinds, kind), all.and(kind); f.Member.Word != "" {
			multi = multi.and(kind)
		}
	}
	multi.Kind = "MultiLock"
	red := plain.and(Rights{
		Kind:    "RedLock",
		scripts: []*scripts.Script{scripts.MajorityAcquire, scripts.Memory},
		keys:    []derived{{from: keyspace.Memory}},
	})
	all = all.and(multi).and(red).and(singleton)
	for _, s := range synchronizers {
		all = all.and(s)
	}
	all.Kind = "all kinds"
	return append(slices.Concat(kinds, []Rights{multi, red, singleton}, synchronizers), all)
}

// and returns the rights of both.
func (r Rights) and(other Rights) Rights {
	return Rights{
		Kind: other.Kind, scripts: slices.Concat(r.scripts, other.scripts),
		keys: slices.Concat(r.keys, other.keys), channels: slices.Concat(r.channels, other.channels),
	}
}

// Rules returns the ACL rules for locks whose names begin with keyPrefix, for a user that has no other rights. With
// Config.Replicas the user also needs +wait.
func (r Rights) Rules(on Topology, keyPrefix string) string {
	commands := slices.Concat(clientCommands[OneServer], clientCommands[on])
	for _, s := range r.scripts {
		commands = append(commands, s.Commands()...)
	}
	begin := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(keyPrefix)
	keys := slices.DeleteFunc(patterns(begin, r.keys), func(p string) bool { return strings.HasPrefix(p, begin) })
	keys = append(keys, begin+"*")
	var rules []string
	for _, part := range []struct {
		sign string
		of   []string
	}{{"+", commands}, {"~", keys}, {"&", patterns(begin, r.channels)}} {
		slices.Sort(part.of)
		for _, rule := range slices.Compact(part.of) {
			rules = append(rules, part.sign+rule)
		}
	}
	return strings.Join(rules, " ")
}

// patterns returns the patterns of the keys or channels that are derived from lock names with that
// beginning, for names with and without braces.
func patterns(begin string, names []derived) (all []string) {
	for _, name := range names {
		switch {
		case name.ofClient:
			all = append(all, name.from("*")+name.more)
		case begin == "":
			before, _, _ := strings.Cut(name.from("*{"), "*")
			all = append(all, before+"*")
		case strings.Contains(begin, "{"):
			all = append(all, name.from(begin+"*")+name.more)
		default:
			all = append(all, name.from(begin+"*")+name.more, name.from(begin+"*{*")+name.more)
		}
	}
	return all
}
