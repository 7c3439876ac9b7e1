package backend

import (
	"cmp"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Part is a member of a MultiLock.
type Part struct {
	Server *Server
	Form   *forms.Form
	Name   string
	Mode   machine.Mode
	// Fenced parts draw a fencing token.
	Fenced bool
	// Majority are the servers of the part if it is a RedLock; Server is then the first of them.
	Majority []*Server
}

// All returns the Backend of a MultiLock, whose parts are taken in the order of Batches.
func All(parts []Part, options *protocol.Options, to Receiver) Backend {
	return &several{newAll(parts, options), to}
}

func newAll(parts []Part, options *protocol.Options) part {
	combined := &all{}
	for _, indices := range Batches(parts) {
		if first := parts[indices[0]]; first.Majority != nil {
			combined.parts = append(combined.parts, newMajority(first.Majority, first.Name, options))
			continue
		}
		var members []*member
		for _, i := range indices {
			members = append(members, newMember(parts[i], options))
		}
		if len(members) == 1 {
			combined.parts = append(combined.parts, members[0])
		} else {
			combined.parts = append(combined.parts, newBatch(members))
		}
	}
	if one, single := combined.parts[0].(*member); len(combined.parts) == 1 && !(single && one.wire.Form.Queue != nil) {
		return combined.parts[0]
	}
	// A fair lock is a part even if it is the only part: a release yields it, as its queue requires.
	combined.sameNamed = sameNamedIn(combined.parts)
	return combined
}

// Batches groups the indices of the parts by script, in the order in which they are taken. Their fencing tokens are in
// the same order.
//
// Two locks have the same order in every MultiLock that has both as members. Otherwise two MultiLocks that share them
// would often each keep one lock reserved and wait for the other lock, until one MultiLock leaves its entry; see
// queueEntries.leave. So the locks are in the order of the parts, by name, and in a cluster by slot; a script takes
// neighbours on one server or in one slot. RedLocks come last: which of their servers have been taken is not certain;
// see sameNamed.
func Batches(parts []Part) (batches [][]int) {
	type location struct {
		server *Server
		slot   uint16
	}
	locations := make([]location, len(parts))
	order := make([]int, len(parts))
	for i, part := range parts {
		order[i], locations[i] = i, location{server: part.Server}
		if part.Server.redis.Cluster() {
			locations[i].slot = keyspace.Slot(part.Server.prefix + part.Name)
		}
	}
	group := func(part *Part) int {
		switch {
		case part.Majority != nil:
			return 2
		case part.Server.redis.Cluster():
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(group(&parts[i])-group(&parts[j]), int(locations[i].slot)-int(locations[j].slot))
	})
	for n, i := range order {
		if n > 0 {
			last := order[n-1]
			if parts[i].Majority == nil && parts[last].Majority == nil && locations[i] == locations[last] {
				batches[len(batches)-1] = append(batches[len(batches)-1], i)
				continue
			}
		}
		batches = append(batches, []int{i})
	}
	return batches
}

// Releases returns the channels on which locks publish a release that is not meant for one waiter.
func Releases(parts []Part) []Channel { return newAll(parts, &protocol.Options{}).channels() }

// Majority returns the Backend of a RedLock, a lock on a majority of servers.
func Majority(servers []*Server, name string, options *protocol.Options, to Receiver) Backend {
	return &several{newMajority(servers, name, options), to}
}
