package backend

import (
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Part is a member of a MultiLock.
type Part struct {
	Server *Server
	Kind   protocol.Kind
	Name   string
	Mode   machine.Mode
	// Fenced parts draw a fencing token.
	Fenced bool
	// Majority are the servers of a RedLock if the part is one; Server is then the first of them.
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
	if len(combined.parts) == 1 {
		return combined.parts[0]
	}
	combined.twins = twinsIn(combined.parts)
	return combined
}

// Batches groups the indices of the parts by script, in the order in which they are taken. Their fencing tokens are
// in the same order. RedLocks come last: which of their servers have been taken is not certain; see twins.
func Batches(parts []Part) [][]int {
	type location struct {
		server *Server
		slot   uint16
	}
	var batches, majorities [][]int
	at := map[location]int{}
	for i, part := range parts {
		p := location{server: part.Server}
		switch {
		case part.Majority != nil:
			majorities = append(majorities, []int{i})
			continue
		case part.Server.redis.Cluster():
			p.slot = keyspace.Slot(part.Server.prefix + part.Name)
		}
		n, known := at[p]
		if !known {
			n = len(batches)
			at[p] = n
			batches = append(batches, nil)
		}
		batches[n] = append(batches[n], i)
	}
	return append(batches, majorities...)
}

// Majority returns the Backend of a RedLock, a lock on a majority of servers.
func Majority(servers []*Server, name string, options *protocol.Options, to Receiver) Backend {
	return &several{newMajority(servers, name, options), to}
}
