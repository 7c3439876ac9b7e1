package actors

import (
	"sync"
	"sync/atomic"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockKey identifies a lock within a system. The name of a MultiLock lists its members.
type lockKey struct {
	name string
	kind messages.Kind
}

// table is the guardian's list of lock actors. The guardian alone adds and removes;
// anybody may look up, so that goroutines need not pass through the guardian's mailbox.
type table struct{ cells sync.Map }

func (t *table) get(key lockKey) *cell {
	if c, ok := t.cells.Load(key); ok {
		return c.(*cell)
	}
	return nil
}

func (t *table) put(c *cell) { t.cells.Store(c.key, c) }

func (t *table) drop(c *cell) { t.cells.CompareAndDelete(c.key, c) }

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

// closeIf closes the gate if no more requests were sent than have been seen.
func (g *gate) closeIf(seen uint64) bool {
	return g.word.CompareAndSwap(seen, seen|gateClosed)
}

// close closes the gate and tells how many requests were sent before.
func (g *gate) close() (sent uint64) {
	return g.word.Or(gateClosed) &^ gateClosed
}
