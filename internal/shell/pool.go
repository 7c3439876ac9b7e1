package shell

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Pool has the shells of a system that have no tenant.
type Pool struct {
	// Stray handles a message that is for no tenant.
	Stray func(ctx actor.Context)
	// End stops a shell that is not needed any more. It must not block.
	End    func(h *Shell)
	free   chan *Shell
	closed atomic.Bool
}

// maxFree is the number of shells that wait for a tenant. Each takes 1 kB.
const maxFree = 256

// NewPool returns a pool without shells.
func NewPool(stray func(ctx actor.Context), end func(h *Shell)) *Pool {
	return &Pool{Stray: stray, End: end, free: make(chan *Shell, maxFree)}
}

// New returns a shell that is not in the pool. Its spawner sets PID and Process.
func (p *Pool) New() *Shell { return &Shell{pool: p} }

// Take takes a shell out of the pool; nil if there is none. It passes over those that the host program has stopped.
func (p *Pool) Take() *Shell {
	for {
		select {
		case h := <-p.free:
			if !h.stopped.Load() {
				return h
			}
		default:
			return nil
		}
	}
}

// Put puts a shell into the pool, or ends it if there are enough.
func (p *Pool) Put(h *Shell) {
	select {
	case p.free <- h:
	default:
		p.End(h)
	}
	if p.closed.Load() { // perhaps since Close has looked
		p.endAll()
	}
}

// Close ends the shells in the pool, and those that are put there later.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.endAll()
}

func (p *Pool) endAll() {
	for h := p.Take(); h != nil; h = p.Take() {
		p.End(h)
	}
}
