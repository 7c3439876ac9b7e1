package actors

import (
	"fmt"
	"slices"
	"sync"

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
	// states are those of each composition, by name: a string is hashed faster than a struct.
	states [kinds.LatchKey + 1]sync.Map
}

func (t *table) get(key lockKey) *lockActor {
	if c, ok := t.states[key.made].Load(key.name); ok {
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

func (t *table) put(s *lockActor) { t.states[s.key.made].Store(s.key.name, s) }

func (t *table) drop(s *lockActor) { t.states[s.key.made].CompareAndDelete(s.key.name, s) }

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on one key in Redis.
func SameKey(a, b messages.Kind) bool { return kinds.Of(a).Format == kinds.Of(b).Format }

// inUse says that the actor of a name cannot serve a request for a kind.
func inUse(s *lockActor, wanted messages.Kind) string {
	return fmt.Sprintf("the name %q is in use in this system as a %s, and cannot be a %s at the same time; use another name", s.key.name, kinds.Of(s.format).Word, kinds.Of(wanted).Word)
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
	for i := range r.table.states {
		for _, state := range r.table.states[i].Range {
			r.Deliver(state.(*lockActor).pid, suspicion{})
		}
	}
	for state := range r.composites.Range {
		if state := state.(*lockActor); state.rt != r {
			r.Deliver(state.pid, suspicion{})
		}
	}
}
