package shell

import "sync"

// Line has the last actors that have become idle.
type Line[A any] struct {
	mu     sync.Mutex
	actors [LineLength]*A
	next   int
}

// LineLength is the number of actors in a full line. Those of a longer one would leave the processor's cache before
// their turn comes.
const LineLength = 256

// Join adds an actor at the end, and returns the first in a full line, which leaves it; nil if the line is not full.
func (l *Line[A]) Join(a *A) (first *A) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, l.actors[l.next] = l.actors[l.next], a
	l.next = (l.next + 1) % LineLength
	return first
}

// Empty lets all leave, without which those would be kept in memory that have gone.
func (l *Line[A]) Empty(left func(*A)) {
	for range LineLength {
		if a := l.Join(nil); a != nil {
			left(a)
		}
	}
}
