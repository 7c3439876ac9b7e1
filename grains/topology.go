package grains

import (
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// topology is what proto.actor knows of the members. It has a member for a while longer than the view. When a member leaves
// the topology, proto.actor ends the connection to it, and loses what it is sending there. Before that each process forgets the
// PIDs of its grains, and the member refuses what was sent to them.
type topology struct {
	members map[string]Member
	missing map[string]time.Time // since when, by the ids of members
}

// update takes a new view, and removes the members that have been missing for grace. It returns the others that are missing.
// If the same process is a member again, under another id, the old one is removed at once, since they share the connection.
func (t *topology) update(alive view, now time.Time, grace time.Duration) (missing cluster.Members) {
	if t.members == nil {
		t.members, t.missing = map[string]Member{}, map[string]time.Time{}
	}
	addresses := map[string]bool{}
	for id, m := range alive {
		addresses[m.Address] = true
		t.members[id] = m
		delete(t.missing, id)
	}
	for id, m := range t.members {
		if _, is := alive[id]; is {
			continue
		}
		since, is := t.missing[id]
		switch {
		case is && now.Sub(since) >= grace, addresses[m.Address]:
			delete(t.members, id)
			delete(t.missing, id)
		case !is:
			t.missing[id] = now
			fallthrough
		default:
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
