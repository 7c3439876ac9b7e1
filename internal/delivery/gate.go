package delivery

import "sync/atomic"

// Gate counts the requests that are sent to an actor, and closes without losing a request: a stopping actor drops its
// mail silently, so an actor may stop only when it has seen all requests, and no further request can be sent.
type Gate struct{ word atomic.Uint64 }

const closed = 1 << 63

// Enter announces a request that is about to be sent; false if the actor is leaving.
func (g *Gate) Enter() bool {
	for {
		sent := g.word.Load()
		if sent&closed != 0 {
			return false
		}
		if g.word.CompareAndSwap(sent, sent+1) {
			return true
		}
	}
}

// Closed reports whether the actor is leaving.
func (g *Gate) Closed() bool { return g.word.Load()&closed != 0 }

// CloseIf closes the gate if all requests that were sent have been seen.
func (g *Gate) CloseIf(seen uint64) bool { return g.word.CompareAndSwap(seen, seen|closed) }

// Close closes the gate and returns how many requests were sent before.
func (g *Gate) Close() (sent uint64) { return g.word.Or(closed) &^ closed }
