package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// A MultiLock has a lock actor of its own, beside those of its members: with client ids of
// their own they exclude each other in Redis, like unrelated clients. But a forced release of one
// ends holds of the other, and holders in this process are notified at once.

// registerWithMembers adds the lock to the composites of the systems of its members.
func (s *lockState) registerWithMembers() {
	for _, m := range s.members {
		m.System.(*Runtime).composites.Store(s, s.members)
	}
}

func (s *lockState) unregisterWithMembers() {
	for _, m := range s.members {
		m.System.(*Runtime).composites.Delete(s)
	}
}

// warnSharers makes the other lock actors that may hold a key which was force-released
// here check whether they still hold it.
func (s *lockState) warnSharers() {
	keys := s.members
	if s.key.made == kinds.OneKey {
		keys = []request.Member{{System: s.rt, Name: s.key.name}}
	}
	for _, key := range keys {
		rt := key.System.(*Runtime)
		if one := rt.table.get(lockKey{name: key.Name, made: kinds.OneKey}); one != nil && one != s {
			s.rt.Deliver(one.pid, suspicion{})
		}
		for other, members := range rt.composites.Range {
			same := func(m request.Member) bool { return m.System == key.System && m.Name == key.Name }
			if other := other.(*lockState); other != s && slices.ContainsFunc(members.([]request.Member), same) {
				s.rt.Deliver(other.pid, suspicion{})
			}
		}
	}
}

// suspectAll makes every lock actor check in Redis whether it still holds its lock: another server has
// become the master, and may not know the last grants of the old one.
func (r *Runtime) suspectAll() {
	for i := range r.table.states {
		for _, state := range r.table.states[i].Range {
			r.Deliver(state.(*lockState).pid, suspicion{})
		}
	}
	for state := range r.composites.Range {
		if state := state.(*lockState); state.rt != r {
			r.Deliver(state.pid, suspicion{})
		}
	}
}

// partsOf returns the members as parts of a MultiLock.
func partsOf(members []request.Member) []backend.Part {
	parts := make([]backend.Part, len(members))
	for i, one := range members {
		rt := one.System.(*Runtime)
		var red []*backend.Server
		if systems := rt.red.Load(); systems != nil {
			red = serversOf(*systems)
		}
		parts[i] = kinds.PartOf(one, rt.server, red)
	}
	return parts
}

// serversOf returns the server of each of the systems.
func serversOf(systems []*Runtime) []*backend.Server {
	servers := make([]*backend.Server, len(systems))
	for i, one := range systems {
		servers[i] = one.server
	}
	return servers
}

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
func (r *Runtime) redSystems() []request.System {
	red := r.red.Load()
	if red == nil {
		return nil
	}
	all := make([]request.System, len(*red))
	for i, each := range *red {
		all[i] = each
	}
	return all
}

// DrawOrder implements System.
func (r *Runtime) DrawOrder(members []request.Member) (order []int) {
	for _, batch := range backend.Batches(partsOf(members)) {
		order = append(order, batch...)
	}
	return order
}
