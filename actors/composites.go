package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// A MultiLock has its own lock actor, besides the lock actors of its members. They have different client ids, so they
// exclude each other in Redis, like unrelated clients. But a forced release of a member also ends the MultiLock's hold,
// and a forced release of the MultiLock ends the holds of its members: holders in this process are notified at once.

// registerWithMembers adds the lock to the composites of the systems of its members.
func (a *lockActor) registerWithMembers() {
	for _, m := range a.members {
		m.System.(*Runtime).composites.Store(a, a.members)
	}
}

// unlist removes the lock from the locks of its system, and from the composites.
func (a *lockActor) unlist() {
	a.rt.locks.Remove(a)
	for _, m := range a.members {
		m.System.(*Runtime).composites.Delete(a)
	}
}

// suspectSharedKeys makes the other lock actors that may hold a key which was force-released
// here check whether they still hold it.
func (a *lockActor) suspectSharedKeys() {
	keys := a.members
	if a.key.Composition == request.OneKey {
		keys = []request.Member{{System: a.rt, Name: a.key.Name}}
	}
	for _, key := range keys {
		rt := key.System.(*Runtime)
		if one := rt.locks.Get(kinds.Key{Name: key.Name, Composition: request.OneKey}); one != nil && one != a {
			one.post(suspicion{one})
		}
		for other, members := range rt.composites.Range {
			same := func(m request.Member) bool { return m.System == key.System && m.Name == key.Name }
			if other := other.(*lockActor); other != a && slices.ContainsFunc(members.([]request.Member), same) {
				other.post(suspicion{other})
			}
		}
	}
}

// suspectAll makes every lock actor check in Redis whether it still holds its lock, because another server has become
// the master, and may not know the last grants of the old master.
func (r *Runtime) suspectAll() {
	for a := range r.locks.All {
		a.post(suspicion{a})
	}
	for each := range r.composites.Range {
		if a := each.(*lockActor); a.rt != r {
			a.post(suspicion{a})
		}
	}
}

// memberSpecsOf returns the specs of the members of a MultiLock.
func memberSpecsOf(members []request.Member) []backend.MemberSpec {
	specs := make([]backend.MemberSpec, len(members))
	for i, one := range members {
		rt := one.System.(*Runtime)
		var red []*backend.Server
		if systems := rt.red.Load(); systems != nil {
			red = serversOf(*systems)
		}
		specs[i] = kinds.MemberSpecOf(one, rt.server, red)
	}
	return specs
}

// serversOf returns the server of each of the systems.
func serversOf(systems []*Runtime) []*backend.Server {
	servers := make([]*backend.Server, len(systems))
	for i, one := range systems {
		servers[i] = one.server
	}
	return servers
}

// systemOf returns the system whose subscriber listens on a channel.
func systemOf(channel backend.Channel) *Runtime { return channel.Server.User.(*Runtime) }

// FormRedLock makes the systems the servers of a RedLock. The first system runs its lock actors.
func FormRedLock(systems []*Runtime) error {
	if len(systems) < 3 {
		return fmt.Errorf("a RedLock needs at least 3 systems, better 5, each on a Redis of its own; it has %d", len(systems))
	}
	home := systems[0]
	for i, each := range systems {
		if slices.Index(systems, each) != i {
			return errors.New("a system is named twice in the RedLock")
		}
		if each.redis.Cluster() {
			return errors.New("a system of the RedLock is on a Redis Cluster; each must be on a single server of its own")
		}
		if each.cfg.Watchdog != home.cfg.Watchdog {
			return fmt.Errorf("the systems of a RedLock must have the same Watchdog, and have %v and %v", home.cfg.Watchdog, each.cfg.Watchdog)
		}
	}
	chosen := slices.Clone(systems)
	if known := home.red.Load(); known == nil || !slices.Equal(*known, chosen) {
		backend.Discover(serversOf(chosen))
	}
	if err := backend.Distinct(serversOf(chosen)); err != nil {
		return err
	}
	if !home.red.CompareAndSwap(nil, &chosen) && !slices.Equal(*home.red.Load(), chosen) {
		return errors.New("the first of these systems has a RedLock with other systems already")
	}
	return nil
}

// redSystems returns the systems of the RedLock of this system; nil if it has none.
func (r *Runtime) redSystems() []request.Home {
	red := r.red.Load()
	if red == nil {
		return nil
	}
	all := make([]request.Home, len(*red))
	for i, each := range *red {
		all[i] = each
	}
	return all
}

// DrawOrder implements request.Home.
func (r *Runtime) DrawOrder(members []request.Member) (order []int) {
	for _, batch := range backend.Batches(memberSpecsOf(members)) {
		order = append(order, batch...)
	}
	return order
}
