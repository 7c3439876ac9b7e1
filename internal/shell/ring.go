package shell

import "sync"

// Ring has the last actors that have become idle.
type Ring[A any] struct {
	mu     sync.Mutex
	actors [RingSize]*A
	next   int
}

// RingSize is the number of actors in a full ring. The actors of a larger ring would leave the processor's cache before
// they are the oldest.
const RingSize = 256

// Push adds an actor. If the ring is full, it removes and returns the oldest actor; else it returns nil.
func (r *Ring[A]) Push(a *A) (oldest *A) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest, r.actors[r.next] = r.actors[r.next], a
	r.next = (r.next + 1) % RingSize
	return oldest
}

// Empty removes all actors, and calls removed for each: otherwise the ring would keep actors in memory that have left.
func (r *Ring[A]) Empty(removed func(*A)) {
	for range RingSize {
		if a := r.Push(nil); a != nil {
			removed(a)
		}
	}
}
