package actors

import "github.com/lockkeeper-go/lockkeeper/messages"

// A MultiLock has a lock actor of its own, beside those of its members: with client ids of
// their own they exclude each other in Redis, like strangers. But a forced release of one
// ends holds of the other, and holders in this process are told of it at once.

// registerWithMembers lets the systems of the members know that the lock is made of theirs.
func (s *lockState) registerWithMembers() {
	for _, m := range s.members {
		m.Runtime.composites.Store(s, s.members)
	}
}

func (s *lockState) unregisterWithMembers() {
	for _, m := range s.members {
		m.Runtime.composites.Delete(s)
	}
}

// warnSharers has the other lock actors that may hold a key which was force-released
// here look whether they still do.
func (s *lockState) warnSharers() {
	keys := s.members
	if s.key.made == ofOneKey {
		keys = []Member{{Runtime: s.rt, Name: s.key.name}}
	}
	for _, key := range keys {
		if one := key.Runtime.table.get(keyOf(messages.Kind_KIND_REENTRANT, key.Name)); one != nil && one != s {
			s.rt.deliver(one.pid, suspicion{})
		}
		for other, members := range key.Runtime.composites.Range {
			if other := other.(*lockState); other != s && has(members.([]Member), key) {
				s.rt.deliver(other.pid, suspicion{})
			}
		}
	}
}

func has(members []Member, key Member) bool {
	for _, m := range members {
		if m.Runtime == key.Runtime && m.Name == key.Name {
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
			r.deliver(state.(*lockState).pid, suspicion{})
		}
	}
	for state := range r.composites.Range {
		if state := state.(*lockState); state.rt != r {
			r.deliver(state.pid, suspicion{})
		}
	}
}
