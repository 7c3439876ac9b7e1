package grains

import (
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// topology contains the members that proto.actor knows. It keeps a member for a while longer than the view does. When a
// member leaves the topology, proto.actor ends the connection to the member, and loses the messages on their way there.
// Before that, each process forgets the PIDs of the member's grains, and the member refuses the messages to them.
//
// A process keeps the id of its first term here, since its connection must outlast its later terms.
type topology struct {
	members map[string]Member    // by their addresses
	missing map[string]time.Time // since when, by the addresses of members
}

// update takes a new view, and removes the members that have been missing for grace. It returns the others that are
// missing.
func (t *topology) update(alive view, now time.Time, grace time.Duration) (missing cluster.Members) {
	if t.members == nil {
		t.members, t.missing = map[string]Member{}, map[string]time.Time{}
	}
	addresses := map[string]bool{}
	for _, m := range alive {
		addresses[m.Address] = true
		if _, known := t.members[m.Address]; !known {
			t.members[m.Address] = m
		}
	}
	for address, m := range t.members {
		since, is := t.missing[address]
		switch {
		case addresses[address]:
			delete(t.missing, address)
		case is && now.Sub(since) >= grace:
			delete(t.members, address)
			delete(t.missing, address)
		default:
			if !is {
				t.missing[address] = now
			}
			missing = append(missing, m.toProto())
		}
	}
	return missing
}

// list returns the members in proto.actor's form.
func (t *topology) list() (members cluster.Members) {
	for _, m := range t.members {
		members = append(members, m.toProto())
	}
	return members
}

func (m Member) toProto() *cluster.Member {
	host, port, _ := net.SplitHostPort(m.Address)
	number, _ := strconv.ParseInt(port, 10, 32)
	return &cluster.Member{Id: m.ID, Host: host, Port: int32(number), Kinds: m.Kinds}
}
