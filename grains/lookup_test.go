//go:build !race

package grains

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A member that is not responsible for a grain says which member is.
func TestDirectory_FollowsEntries(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	place := func(n **node) func([]Member, string, string) Member {
		return func(members []Member, _, _ string) Member {
			for _, m := range members {
				if m.Address == (*n).ActorSystem.Address() {
					return m
				}
			}
			return members[0]
		}
	}
	var a, b *node
	a = f.node(Config{Place: place(&a)})
	a.StartMember()
	b = f.node(Config{Place: place(&b)})
	b.StartMember()
	redistest.Eventually(t, "two members", func() bool { return len(*a.d.view.Load()) == 2 && len(*b.d.view.Load()) == 2 })
	for i := range 10 {
		at, token := a.mustAsk(t, fmt.Sprint(i), "where")
		if there, same := b.mustAsk(t, fmt.Sprint(i), "where"); at != a.ActorSystem.Address() || there != at || same != token {
			t.Errorf("%d is at %s with %d, and at %s with %d", i, at, token, there, same)
		}
	}
	f.expect()
}

// A member that does not answer delays few lookups while its lease lasts, and starts no grain.
func TestDirectory_AvoidsSilentMembers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	f.redis.Do(t, "SET", f.key("member:dead"), "1")
	locktest.OK(t, a.d.redis.join(t.Context(), Member{ID: "dead", Address: "127.0.0.1:1", Kinds: []string{"account"}}))
	redistest.Eventually(t, "its record", func() bool { return len(*a.d.view.Load()) == 2 })
	for i := 0; ; i++ {
		a.mustAsk(t, fmt.Sprint(i), "where")
		if _, silent := a.d.silent.Load("dead"); silent {
			break
		}
	}
	if may := a.d.candidates("account", nil); len(may) != 1 || may[0].ID == "dead" {
		t.Errorf("a grain may start at %v", may)
	}
	f.redis.Do(t, "DEL", f.key("member:dead"))
	redistest.Eventually(t, "that it is forgotten", func() bool { _, silent := a.d.silent.Load("dead"); return !silent })
}

// A process forgets the PIDs of a member that has left before proto.actor ends the connection there, and loses what is on its way.
func TestMember_ForgetsPIDs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	slow := f.node(Config{Locks: lockkeeper.Config{Poll: time.Minute}})
	slow.StartClient()
	slow.mustAsk(t, "a", "where")
	member := a.d.term.Load().member.ID
	locktest.OK(t, a.d.Leave(t.Context()))
	if _, cached := slow.PidCache.Get("a", "account"); !cached {
		t.Fatal("the PID is not remembered")
	}
	locktest.OK(t, slow.d.refresh(t.Context()))
	if _, cached := slow.PidCache.Get("a", "account"); cached || !slow.MemberList.ContainsMemberID(member) {
		t.Errorf("the PID is remembered: %v, and the member is connected: %v", cached, slow.MemberList.ContainsMemberID(member))
	}
}

// The default place is the same for all, as balanced as one at random, and of a member that goes only its grains move.
func TestByHash_MovesOnlyTheGrainsOfAMemberThatGoes(t *testing.T) {
	members := []Member{{ID: uuid.NewString()}, {ID: uuid.NewString()}, {ID: uuid.NewString()}}
	reversed := []Member{members[2], members[1], members[0]}
	count := map[string]int{}
	for i := range 3000 {
		at := byHash(members, "account", fmt.Sprint(i))
		count[at.ID]++
		if now := byHash(reversed, "account", fmt.Sprint(i)); now.ID != at.ID {
			t.Errorf("%d is at %s and at %s", i, at.ID, now.ID)
		}
		if now := byHash(members[:2], "account", fmt.Sprint(i)); now.ID != at.ID && at.ID != members[2].ID {
			t.Errorf("%d moves from %s", i, at.ID)
		}
	}
	for id, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("%s has %d of 3000", id, n)
		}
	}
}

// A lookup without a member that has the kind fails after Activation.
func TestLookUps_WithoutMembersFailInTime(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	c := f.node(Config{Activation: 50 * time.Millisecond})
	if c.d.System() != nil || c.d.get(cluster.NewClusterIdentity("a", "account")) != nil {
		t.Error("a Directory that is not started has a System or finds a grain")
	}
	c.StartClient()
	if pid := c.Get("a", "account"); pid != nil {
		t.Errorf("it has found %v", pid)
	}
	f.member(Config{})
	redistest.Eventually(t, "a grain", func() bool { return c.Get("a", "account") != nil })
	if c.d.System() == nil || c.Get("a", "none") != nil || c.Get("\xff", "account") != nil {
		t.Error("it has no System, or finds a grain that cannot be")
	}
}
