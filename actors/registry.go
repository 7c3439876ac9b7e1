package actors

import (
	"fmt"
	"slices"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockKey identifies a lock actor within a system. One actor owns one key in Redis: there
// is none beside it for another kind of the same name (see another). Locks that are made of
// several have keys of their own; the name of a MultiLock lists its members.
type lockKey struct {
	name string
	made kinds.Composition
}

// String returns the name of the lock, or those of the members.
func (k lockKey) String() string { return k.name }

// keyFor is the key of the lock actor that a call is for.
func keyFor(call *request.Call) lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.ID(), made: kinds.Members}
	}
	return keyOf(call.Kind, call.Name)
}

func keyOf(kind messages.Kind, name string) lockKey {
	return lockKey{name: name, made: kinds.Of(kind).Consists}
}

// table is the guardian's list of the actors of keys. The guardian alone adds and removes;
// all goroutines may look up, so that goroutines need not pass through the guardian's mailbox.
type table struct {
	// states are those of each composition, by name: a string is hashed faster than a struct.
	states [kinds.LatchKey + 1]sync.Map
}

func (t *table) get(key lockKey) *lockState {
	if c, ok := t.states[key.made].Load(key.name); ok {
		return c.(*lockState)
	}
	return nil
}

// another returns the actor that owns the same key in Redis as something else, such as a lock beside a
// semaphore. It returns nil if there is none, if it is leaving, or if key is made of several.
func (t *table) another(key lockKey) *lockState {
	single := []kinds.Composition{kinds.OneKey, kinds.SemaphoreKey, kinds.LatchKey}
	if !slices.Contains(single, key.made) {
		return nil
	}
	for _, made := range single {
		if c := t.get(lockKey{name: key.name, made: made}); c != nil && made != key.made && !c.gate.closed() {
			return c
		}
	}
	return nil
}

func (t *table) put(s *lockState) { t.states[s.key.made].Store(s.key.name, s) }

func (t *table) drop(s *lockState) { t.states[s.key.made].CompareAndDelete(s.key.name, s) }

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on
// one key in Redis.
func SameKey(a, b messages.Kind) bool { return kinds.Of(a).Format == kinds.Of(b).Format }

// otherFormat handles a request for another kind of lock of the same name, which Redis
// would keep in another format under the same key. It is refused while this one is in
// use; else this actor makes room for another.
//
// The request goes back to the guardian, and comes behind what that was sent meanwhile: a
// Cancel that its sender sent right behind an Acquire withdraws nothing then, and says so.
func (s *lockState) otherFormat(call *request.Call) {
	if !s.idle() || s.owners.inUse() {
		s.accepted = call
		s.rt.refuse(call, machine.Invalid, inUse(s, call.LockKind()))
		return
	}
	s.owners.forget(s, len(s.owners.resting))
	s.stopAlarm()
	s.rt.table.drop(s)
	s.leaving = &leaving{moving: true, sent: s.gate.close()}
	s.leaving.receive(s, call, nil)
}

// inUse says that the actor of a name cannot serve a request for a kind.
func inUse(s *lockState, wanted messages.Kind) string {
	return fmt.Sprintf("the name %q is in use in this system as a %s, and cannot be a %s at the same time; use another name", s.key.name, kinds.Of(s.format).Word, kinds.Of(wanted).Word)
}

// A MultiLock has a lock actor of its own, beside those of its members: with client ids of
// their own they exclude each other in Redis, like unrelated clients. But a forced release of one
// ends holds of the other, and holders in this process are notified at once.

// registerWithMembers lets the systems of the members know that the lock is made of theirs.
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

// warnSharers has the other lock actors that may hold a key which was force-released
// here look whether they still do.
func (s *lockState) warnSharers() {
	keys := s.members
	if s.key.made == kinds.OneKey {
		keys = []request.Member{{System: s.rt, Name: s.key.name}}
	}
	for _, key := range keys {
		rt := key.System.(*Runtime)
		if one := rt.table.get(keyOf(messages.Kind_KIND_REENTRANT, key.Name)); one != nil && one != s {
			s.rt.Deliver(one.pid, suspicion{})
		}
		for other, members := range rt.composites.Range {
			if other := other.(*lockState); other != s && has(members.([]request.Member), key) {
				s.rt.Deliver(other.pid, suspicion{})
			}
		}
	}
}

func has(members []request.Member, key request.Member) bool {
	for _, m := range members {
		if m.System == key.System && m.Name == key.Name {
			return true
		}
	}
	return false
}

// examine has every lock that is held here looked for in Redis: another server has become the
// master, and may not know what the old one has granted last.
func (r *Runtime) examine() {
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
