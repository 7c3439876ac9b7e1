package conformance_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/conformance"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// process is what a process has: an actor system, and a System on each server.
type process struct {
	locktest.Saboteur
	kind    conforming
	actors  *actor.ActorSystem
	clients []rueidis.Client
	systems []*lockkeeper.System
	red     *lockkeeper.Red
	killed  bool
	// home is the System that has the lock actor.
	home *lockkeeper.System
}

// Acquire implements conformance.Client.
func (p *process) Acquire(ctx context.Context, lock string, r conformance.Request) (conformance.Hold, error) {
	return p.acquire(ctx, lock, r)
}

func (p *process) acquire(ctx context.Context, lock string, r conformance.Request) (conformance.Hold, error) {
	var options []lockkeeper.Option
	if r.Lease != 0 {
		options = append(options, lockkeeper.WithLease(r.Lease))
	}
	if r.Wait != 0 {
		options = append(options, lockkeeper.WithWait(r.Wait))
	}
	if p.kind.once {
		options = append(options, lockkeeper.WithoutReentry())
	}
	acquire := p.kind.lock(p, lock).Acquire
	if r.Try {
		acquire = p.kind.lock(p, lock).TryAcquire
	}
	hold, err := acquire(ctx, options...)
	if err != nil {
		return nil, translated(err)
	}
	c := &called{Hold: hold, process: p, lock: lock, lost: make(chan struct{})}
	context.AfterFunc(hold.Context(), func() {
		if errors.Is(hold.Err(), lockkeeper.ErrLost) {
			close(c.lost)
		}
	})
	if p.kind.message != nil && p.kind.message(lock).Kind == messages.Kind_KIND_FENCED {
		return &numbered{c}, nil
	}
	if hold.MemberTokens() != nil {
		return &numbered{c}, nil
	}
	return c, nil
}

// Close implements conformance.Client.
func (p *process) Close(ctx context.Context) error {
	var all error
	if p.home != nil {
		all = p.home.Close(ctx) // first, while it can still release what it has on the others
	}
	for _, s := range p.systems {
		all = errors.Join(all, s.Close(ctx))
	}
	return all
}

// Kill implements conformance.Killer.
func (p *process) Kill() {
	p.killed = true
	for _, c := range p.clients {
		c.Close()
	}
}

// ForceRelease implements conformance.ForceReleaser.
func (p *process) ForceRelease(ctx context.Context, lock string) (bool, error) {
	wasHeld, err := p.kind.lock(p, lock).ForceRelease(ctx)
	return wasHeld, translated(err)
}

// Inspect implements conformance.Inspector.
func (p *process) Inspect(ctx context.Context, lock string) (conformance.Status, error) {
	s, err := p.kind.lock(p, lock).Inspect(ctx)
	status := conformance.Status{Locked: s.Locked, HeldHere: s.HeldHere, Count: s.HoldCount, Waiters: s.Waiters}
	if p.kind.ordered {
		status.Queue = s.Subscribers
	}
	return status, translated(err)
}

// Crashes implements conformance.Crasher.
func (p *process) Crashes(lock string) map[string]func(t testing.TB) {
	ways := map[string]func(t testing.TB){}
	for _, message := range []string{"actors.tick", "*actors.replied", "*actors.Call", "*messages.Inspect"} {
		for _, when := range []string{"before", "after"} {
			ways[when+" "+message] = func(t testing.TB) {
				before, after := locktest.Once(message), (func(any) bool)(nil)
				if when == "after" {
					before, after = after, before
				}
				crashes := p.Count.Load()
				p.Hit(before, after)
				redistest.Eventually(t, "the crash", func() bool {
					switch { // ticks and replies come by themselves, with the next renewal
					case message == "*actors.Call":
						_, _ = p.kind.lock(p, lock).Inspect(context.Background())
					case message == "*messages.Inspect":
						p.actors.Root.Send(p.home.Guardian(), &messages.Inspect{Lock: p.kind.message(lock)})
					}
					return p.Count.Load() > crashes
				})
				p.Hit(nil, nil)
			}
		}
	}
	if p.kind.message == nil {
		delete(ways, "before *messages.Inspect")
		delete(ways, "after *messages.Inspect")
	}
	return ways
}

var errorsOfTheSuite = map[error]error{
	lockkeeper.ErrHeld:        conformance.ErrHeld,
	lockkeeper.ErrTimeout:     conformance.ErrTimeout,
	lockkeeper.ErrClosed:      conformance.ErrClosed,
	lockkeeper.ErrReentry:     conformance.ErrReentry,
	lockkeeper.ErrInvalid:     conformance.ErrInvalid,
	lockkeeper.ErrLost:        conformance.ErrLost,
	lockkeeper.ErrNotHeld:     conformance.ErrNotHeld,
	lockkeeper.ErrUnavailable: conformance.ErrUnavailable,
}

func translated(err error) error {
	all := err
	for ours, theirs := range errorsOfTheSuite {
		if errors.Is(err, ours) {
			all = errors.Join(all, theirs)
		}
	}
	return all
}

// called is a hold by the Go API.
type called struct {
	*lockkeeper.Hold
	process *process
	lock    string
	lost    chan struct{}
}

// Release implements conformance.Hold.
func (c *called) Release(ctx context.Context) error { return translated(c.Hold.Release(ctx)) }

// Lost implements conformance.Hold.
func (c *called) Lost() <-chan struct{} { return c.lost }

// Reenter implements conformance.Reenterer.
func (c *called) Reenter(ctx context.Context, r conformance.Request) (conformance.Hold, error) {
	return c.process.acquire(c.Context(), c.lock, r)
}

// numbered is one with tokens.
type numbered struct{ *called }

// Tokens implements conformance.Tokened.
func (n *numbered) Tokens() []int64 {
	if members := n.MemberTokens(); members != nil {
		return members
	}
	return []int64{n.Token()}
}
