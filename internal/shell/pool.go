package shell

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Pool has the shells of a system that have no tenant.
type Pool struct {
	// Stray handles a message that is for no tenant.
	Stray func(ctx actor.Context)
	// End stops a shell that is no longer needed. It must not block.
	End    func(shell *Shell)
	free   chan *Shell
	closed atomic.Bool
}

// maxFree is the number of shells that wait for a tenant. Each takes 1 kB.
const maxFree = 256

// NewPool returns a pool without shells.
func NewPool(stray func(ctx actor.Context), end func(shell *Shell)) *Pool {
	return &Pool{Stray: stray, End: end, free: make(chan *Shell, maxFree)}
}

// New returns a shell that is not in the pool. Its spawner sets PID and Process.
func (p *Pool) New() *Shell { return &Shell{pool: p} }

// Take takes a shell out of the pool; nil if there is none. It passes over shells that the host program has stopped.
func (p *Pool) Take() *Shell {
	for {
		select {
		case shell := <-p.free:
			if !shell.stopped.Load() {
				return shell
			}
		default:
			return nil
		}
	}
}

// Put puts a shell into the pool, or ends the shell if there are enough.
func (p *Pool) Put(shell *Shell) {
	select {
	case p.free <- shell:
	default:
		p.End(shell)
	}
	if p.closed.Load() { // perhaps after Close has looked
		p.endAll()
	}
}

// Close ends the shells in the pool, and the shells that are put there later.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.endAll()
}

func (p *Pool) endAll() {
	for shell := p.Take(); shell != nil; shell = p.Take() {
		p.End(shell)
	}
}
