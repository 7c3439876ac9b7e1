package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockKey identifies a lock actor within a system. One actor owns one key in Redis: there
// is none beside it for another kind of the same name (see conflicting). Locks that are made of
// several have keys of their own; the name of a MultiLock lists its members.
type lockKey struct {
	name string
	made kinds.Composition
}

// String returns the name of the lock, or those of the members.
func (k lockKey) String() string { return k.name }

// keyFor returns the key of the lock actor that serves a call.
func keyFor(call *request.Call) lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.ID(), made: kinds.Members}
	}
	return lockKey{name: call.Name, made: kinds.Of(call.Kind).Consists}
}

// table is the guardian's list of the actors of keys. The guardian alone adds and removes;
// all goroutines may look up, so that goroutines need not pass through the guardian's mailbox.
type table struct {
	// actors has those of each composition by name: a string is hashed faster than a struct.
	actors [kinds.LatchKey + 1]sync.Map
}

func (t *table) get(key lockKey) *lockActor {
	if c, ok := t.actors[key.made].Load(key.name); ok {
		return c.(*lockActor)
	}
	return nil
}

// conflicting returns the actor that owns the same key in Redis as something else, such as a latch beside a semaphore. It
// returns nil if there is none, if it is leaving, if key is made of several, or if the call only frees something, which
// must reach Redis, even if the name has been tried by mistake: Redis refuses it if the key has another type.
func (t *table) conflicting(key lockKey, call *request.Call) *lockActor {
	single := []kinds.Composition{kinds.OneKey, kinds.SemaphoreKey, kinds.LatchKey}
	if !slices.Contains(single, key.made) {
		return nil
	}
	for _, made := range single {
		c := t.get(lockKey{name: key.name, made: made})
		if c != nil && made != key.made && !c.gate.Closed() && (!call.Op.Frees() || kinds.SameType(c.format, call.LockKind())) {
			return c
		}
	}
	return nil
}

func (t *table) put(s *lockActor) { t.actors[s.key.made].Store(s.key.name, s) }

func (t *table) drop(s *lockActor) { t.actors[s.key.made].CompareAndDelete(s.key.name, s) }

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on one key in Redis.
func SameKey(a, b messages.Kind) bool { return kinds.Of(a).Format == kinds.Of(b).Format }

// inUseText says that the actor of a name cannot serve a request for a kind.
func inUseText(s *lockActor, wanted messages.Kind) string {
	return fmt.Sprintf("the name %q is in use in this system as a %s, and cannot be a %s at the same time; use another name",
		s.key.name, kinds.Of(s.format).Word, kinds.Of(wanted).Word)
}

// A MultiLock has a lock actor of its own, beside those of its members: with client ids of
// their own they exclude each other in Redis, like unrelated clients. But a forced release of one
// ends holds of the other, and holders in this process are notified at once.

// registerWithMembers adds the lock to the composites of the systems of its members.
func (s *lockActor) registerWithMembers() {
	for _, m := range s.members {
		m.System.(*Runtime).composites.Store(s, s.members)
	}
}

func (s *lockActor) unregisterWithMembers() {
	for _, m := range s.members {
		m.System.(*Runtime).composites.Delete(s)
	}
}

// suspectSharedKeys makes the other lock actors that may hold a key which was force-released
// here check whether they still hold it.
func (s *lockActor) suspectSharedKeys() {
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
			if other := other.(*lockActor); other != s && slices.ContainsFunc(members.([]request.Member), same) {
				s.rt.Deliver(other.pid, suspicion{})
			}
		}
	}
}

// suspectAll makes every lock actor check in Redis whether it still holds its lock: another server has
// become the master, and may not know the last grants of the old one.
func (r *Runtime) suspectAll() {
	for i := range r.table.actors {
		for _, each := range r.table.actors[i].Range {
			r.Deliver(each.(*lockActor).pid, suspicion{})
		}
	}
	for each := range r.composites.Range {
		if s := each.(*lockActor); s.rt != r {
			r.Deliver(s.pid, suspicion{})
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
