package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

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
