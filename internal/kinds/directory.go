package kinds

import (
	"slices"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Key identifies a lock actor within a system. One actor owns one key in Redis: no other actor serves another kind
// of the same name (see Directory.Conflicting). Locks that are made of several locks or servers have their own Keys;
// the name of a MultiLock lists its members.
type Key struct {
	Name        string
	Composition request.Composition
}

// String returns the name of the lock, or the names of the members.
func (k Key) String() string { return k.Name }

// KeyOf returns the key of the lock actor that serves a call.
func KeyOf(call *request.Call) Key {
	if call.Members != nil {
		return Key{Name: call.Members.ID(), Composition: request.SeveralLocks}
	}
	return Key{Name: call.Name, Composition: Of(call.Kind).Composition}
}

// Listed is a lock actor in a Directory.
type Listed interface {
	comparable
	// ListedAs returns the actor's key, and the kind as which the lock is stored in Redis.
	ListedAs() (Key, messages.Kind)
	// Leaving reports whether the actor no longer takes requests.
	Leaving() bool
}

// Directory lists the lock actors of a system. Any goroutine may use it. The zero value is empty.
type Directory[A Listed] struct {
	adding sync.Mutex
	// actors contains the actors of each composition by name, since a string is hashed faster than a struct.
	actors [request.NumCompositions]sync.Map
}

// Get returns the actor of a key; the zero value if there is none.
func (d *Directory[A]) Get(key Key) (a A) {
	if found, ok := d.actors[key.Composition].Load(key.Name); ok {
		return found.(A)
	}
	return a
}

// All yields each actor.
func (d *Directory[A]) All(yield func(A) bool) {
	for i := range d.actors {
		for _, each := range d.actors[i].Range {
			if !yield(each.(A)) {
				return
			}
		}
	}
}

// Conflicting returns the actor that owns the same key in Redis as something else, such as a latch for a semaphore. It
// returns the zero value if there is no such actor, if the actor is leaving, if key is made of several locks or
// servers, or if the call only frees something. A call that frees something must always reach Redis. If it names the
// wrong kind by mistake, Redis refuses it when the key has another type.
func (d *Directory[A]) Conflicting(key Key, call *request.Call) (none A) {
	single := []request.Composition{request.OneKey, request.SemaphoreKey, request.LatchKey}
	if !slices.Contains(single, key.Composition) {
		return none
	}
	for _, made := range single {
		a := d.Get(Key{Name: key.Name, Composition: made})
		if a == none || made == key.Composition || a.Leaving() {
			continue
		}
		if _, storedAs := a.ListedAs(); !call.Op.Frees() || SameType(storedAs, call.LockKind()) {
			return a
		}
	}
	return none
}

// Add adds an actor for a first request, unless the key has an actor that is not leaving, or Conflicting finds an
// actor.
func (d *Directory[A]) Add(a A, first *request.Call) (added bool) {
	var none A
	key, _ := a.ListedAs()
	d.adding.Lock()
	defer d.adding.Unlock()
	if other := d.Get(key); other != none && !other.Leaving() || d.Conflicting(key, first) != none {
		return false
	}
	d.actors[key.Composition].Store(key.Name, a)
	return true
}

// Remove removes an actor, if it is there.
func (d *Directory[A]) Remove(a A) {
	key, _ := a.ListedAs()
	d.actors[key.Composition].CompareAndDelete(key.Name, a)
}
