package grains

import (
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// topology is what proto.actor knows of the members. It has a member for a while longer than the view. When a member leaves
// the topology, proto.actor ends the connection to it, and loses what it is sending there. Before that the member refuses the
// requests to its stopped grains, and each process forgets their PIDs.
type topology struct {
	members map[string]Member
	missing map[string]time.Time // since when, by the ids of members
}

// update takes a new view, and removes the members that have been missing for grace. It reports whether others are missing.
// If the same process is a member again, under another id, the old one is removed at once, since they share the connection.
func (t *topology) update(alive view, now time.Time, grace time.Duration) (missing bool) {
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
		}
	}
	return len(t.missing) > 0
}

// list returns the members in proto.actor's form.
func (t *topology) list() (members cluster.Members) {
	for id, m := range t.members {
		host, port, _ := net.SplitHostPort(m.Address)
		number, _ := strconv.ParseInt(port, 10, 32)
		members = append(members, &cluster.Member{Id: id, Host: host, Port: int32(number), Kinds: m.Kinds})
	}
	return members
}
