package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockKey identifies a lock actor within a system. One actor owns one key in Redis: there
// is none beside it for another kind of the same name (see another). Locks that are made of
// several have keys of their own; the name of a MultiLock lists its members.
type lockKey struct {
	name string
	made composition
}

// composition is what a lock consists of.
type composition uint8

const (
	ofOneKey composition = iota
	ofMembers
	ofServers
	// ofSemaphore and ofLatch are synchronizers without owners.
	ofSemaphore
	ofLatch
)

// keyFor is the key of the lock actor that a call is for.
func keyFor(call *request.Call) lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.ID(), made: ofMembers}
	}
	return keyOf(call.Kind, call.Name)
}

func keyOf(kind messages.Kind, name string) lockKey {
	switch kind {
	case messages.Kind_KIND_RED:
		return lockKey{name: name, made: ofServers}
	case messages.Kind_KIND_SEMAPHORE:
		return lockKey{name: name, made: ofSemaphore}
	case messages.Kind_KIND_LATCH:
		return lockKey{name: name, made: ofLatch}
	}
	return lockKey{name: name}
}

// formatOf is how a lock of that kind is written in Redis. A plain and a fenced lock are
// the same hash; only what a hold draws beside it differs.
func formatOf(kind messages.Kind) messages.Kind {
	if kind == messages.Kind_KIND_FENCED {
		return messages.Kind_KIND_REENTRANT
	}
	return kind
}

// table is the guardian's list of the actors of keys. The guardian alone adds and removes;
// all goroutines may look up, so that goroutines need not pass through the guardian's mailbox.
type table struct {
	// states are those of each making, by name: a string is hashed faster than a struct.
	states [ofLatch + 1]sync.Map
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
	single := []composition{ofOneKey, ofSemaphore, ofLatch}
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

// gate counts the requests sent to a lock actor and closes without losing one: a
// stopping actor drops its mail silently, so an actor may stop only when it has
// seen everything that was sent, and nothing can be sent any more.
type gate struct{ word atomic.Uint64 }

const gateClosed = 1 << 63

// enter announces a request that is about to be sent; false if the actor is leaving.
func (g *gate) enter() bool {
	for {
		sent := g.word.Load()
		if sent&gateClosed != 0 {
			return false
		}
		if g.word.CompareAndSwap(sent, sent+1) {
			return true
		}
	}
}

// closed reports whether the actor is leaving.
func (g *gate) closed() bool { return g.word.Load()&gateClosed != 0 }

// closeIf closes the gate if no more requests were sent than have been seen.
func (g *gate) closeIf(seen uint64) bool {
	return g.word.CompareAndSwap(seen, seen|gateClosed)
}

// close closes the gate and tells how many requests were sent before.
func (g *gate) close() (sent uint64) {
	return g.word.Or(gateClosed) &^ gateClosed
}
