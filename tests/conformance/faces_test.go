package conformance_test

// The two faces of a lock: calls, and messages.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/tests/conformance/suite"
)

// process is what a process has: an actor system, and a System on each server. Its locks are
// asked for by goroutines.
type process struct {
	locktest.Saboteur
	adapter
	actors *actor.ActorSystem
	sites  []*locktest.Site
	red    *lockkeeper.Red
	killed bool
}

// Open implements suite.Adapter.
func (a adapter) Open(t testing.TB) suite.Client {
	t.Helper()
	p := &process{adapter: a, actors: locktest.QuietActorSystem()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if p.killed {
			cancel()
		}
		if err := p.Close(ctx); err != nil && !p.killed {
			t.Errorf("close: %v", err)
		}
		for _, s := range p.sites {
			s.Client.Close()
		}
	})
	faultinject.Into(p.actors, p.Middleware)
	var systems []*lockkeeper.System
	for _, server := range a.servers {
		client, err := lockkeeper.Connect(a.url(server))
		if err != nil {
			t.Fatal(err)
		}
		system, err := lockkeeper.New(p.actors, client, lockkeeper.Config{
			KeyPrefix: keyPrefix, Watchdog: locktest.Watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: locktest.Watchdog,
		})
		if err != nil {
			t.Fatal(err)
		}
		systems = append(systems, system)
		p.sites = append(p.sites, &locktest.Site{System: system, Actors: p.actors, Client: client})
	}
	if len(systems) == 3 {
		var err error
		if p.red, err = lockkeeper.RedLock(systems...); err != nil {
			t.Fatal(err)
		}
	}
	if flaw := os.Getenv(flawVariable); flaw != "" {
		return newFlawed(p, flaw)
	}
	if a.byMessage {
		return &mailed{p}
	}
	return p
}

func (p *process) the(name string) *lockkeeper.Lock { return p.lock(p, name) }

func (p *process) guardian() *actor.PID { return p.sites[p.home].Guardian() }

// Acquire implements suite.Client.
func (p *process) Acquire(ctx context.Context, lock string, r suite.Request) (suite.Hold, error) {
	var options []lockkeeper.Option
	if r.Lease != 0 {
		options = append(options, lockkeeper.WithLease(r.Lease))
	}
	if r.Wait != 0 {
		options = append(options, lockkeeper.WithWait(r.Wait))
	}
	if r.Once {
		options = append(options, lockkeeper.WithoutReentry())
	}
	acquire := p.the(lock).Acquire
	if r.Try {
		acquire = p.the(lock).TryAcquire
	}
	hold, err := acquire(ctx, options...)
	if err != nil {
		return nil, translated(err)
	}
	c := &called{Hold: hold, process: p, name: lock, lost: make(chan struct{})}
	context.AfterFunc(hold.Context(), func() {
		if errors.Is(hold.Err(), lockkeeper.ErrLost) {
			close(c.lost)
		}
	})
	return c, nil
}

// Close implements suite.Client.
func (p *process) Close(ctx context.Context) error {
	all := p.sites[p.home].Close(ctx) // first, while it can still release what it has on the others
	for _, s := range p.sites {
		all = errors.Join(all, s.Close(ctx))
	}
	return all
}

// Kill implements suite.Client.
func (p *process) Kill() {
	p.killed = true
	for _, s := range p.sites {
		s.Client.Close()
	}
}

// ForceRelease implements suite.Client.
func (p *process) ForceRelease(ctx context.Context, lock string) (bool, error) {
	wasHeld, err := p.the(lock).ForceRelease(ctx)
	return wasHeld, translated(err)
}

// Inspect implements suite.Client.
func (p *process) Inspect(ctx context.Context, lock string) (suite.Status, error) {
	s, err := p.the(lock).Inspect(ctx)
	return suite.Status{Locked: s.Locked, HeldHere: s.HeldHere, Count: s.HoldCount, Waiters: s.Waiters, Queue: s.Subscribers}, translated(err)
}

// Crashes implements suite.Client.
func (p *process) Crashes(lock string) map[string]func(t testing.TB) {
	ways := map[string]func(t testing.TB){}
	crash := func(message string, provoke func()) {
		for _, when := range []string{"before", "after"} {
			ways[when+" "+message] = func(t testing.TB) {
				before, after := locktest.Once(message), (func(any) bool)(nil)
				if when == "after" {
					before, after = after, before
				}
				crashes := p.Count.Load()
				p.Hit(before, after)
				redistest.Eventually(t, "the crash", func() bool {
					provoke()
					return p.Count.Load() > crashes
				})
				p.Hit(nil, nil)
			}
		}
	}
	crash("actors.tick", func() {}) // ticks and replies come by themselves, with the next renewal
	crash("*actors.replied", func() {})
	crash("*actors.Call", func() { _, _ = p.the(lock).Inspect(context.Background()) })
	if p.message != nil {
		crash("*messages.Inspect", func() { p.actors.Root.Send(p.guardian(), &messages.Inspect{Lock: p.message(lock)}) })
	}
	return ways
}

// errorsOfTheSuite are its errors, with ours, and our reasons.
var errorsOfTheSuite = []struct {
	theirs, ours error
	reason       messages.Reason
}{
	{suite.ErrHeld, lockkeeper.ErrHeld, messages.Reason_REASON_HELD},
	{suite.ErrTimeout, lockkeeper.ErrTimeout, messages.Reason_REASON_TIMED_OUT},
	{suite.ErrClosed, lockkeeper.ErrClosed, messages.Reason_REASON_CLOSED},
	{suite.ErrReentry, lockkeeper.ErrReentry, messages.Reason_REASON_REENTRY},
	{suite.ErrInvalid, lockkeeper.ErrInvalid, messages.Reason_REASON_INVALID},
	{suite.ErrLost, lockkeeper.ErrLost, messages.Reason_REASON_LOST},
	{suite.ErrNotHeld, lockkeeper.ErrNotHeld, messages.Reason_REASON_NOT_HELD},
	{suite.ErrUnavailable, lockkeeper.ErrUnavailable, messages.Reason_REASON_UNAVAILABLE},
}

func translated(err error) error {
	for _, e := range errorsOfTheSuite {
		if errors.Is(err, e.ours) {
			return errors.Join(err, e.theirs)
		}
	}
	return err
}

// called is a hold by the Go API.
type called struct {
	*lockkeeper.Hold
	process *process
	name    string
	lost    chan struct{}
}

// Release implements suite.Hold.
func (c *called) Release(ctx context.Context) error { return translated(c.Hold.Release(ctx)) }

// Lost implements suite.Hold.
func (c *called) Lost() <-chan struct{} { return c.lost }

// Reenter implements suite.Hold.
func (c *called) Reenter(_ context.Context, r suite.Request) (suite.Hold, error) {
	return c.process.Acquire(c.Context(), c.name, r)
}

// Tokens implements suite.Hold.
func (c *called) Tokens() []int64 {
	if members := c.MemberTokens(); members != nil {
		return members
	}
	return []int64{c.Token()}
}

// mailed is a process whose locks are asked for by message. Every holder is an actor.
type mailed struct{ *process }

// holder is an actor that asks for a lock.
type holder struct {
	process *process
	lock    *messages.Lock
	pid     *actor.PID
	answers chan any
	lost    chan struct{}
	once    sync.Once
}

func (m *mailed) holder(lock string) *holder {
	h := &holder{process: m.process, lock: m.message(lock), answers: make(chan any, 16), lost: make(chan struct{})}
	h.pid = m.actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch message := c.Message().(type) {
		case *messages.LeaseLost:
			h.once.Do(func() { close(h.lost) })
		case *messages.Cancelled, *messages.LeaseAtRisk:
		case proto.Message:
			h.answers <- message
		}
	}))
	return h
}

func (h *holder) send(m proto.Message) {
	h.process.actors.Root.RequestWithCustomSender(h.process.guardian(), m, h.pid)
}

// Acquire implements suite.Client.
func (m *mailed) Acquire(ctx context.Context, lock string, r suite.Request) (suite.Hold, error) {
	h := m.holder(lock)
	if r.Death != nil {
		go func() {
			<-r.Death
			m.actors.Root.Stop(h.pid)
		}()
	}
	return h.acquire(ctx, r)
}

func (h *holder) acquire(ctx context.Context, r suite.Request) (suite.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request := &messages.Acquire{Lock: h.lock, NoReentry: r.Once}
	if r.Lease != 0 {
		request.Lease = durationpb.New(r.Lease)
	}
	if r.Wait != 0 || r.Try {
		request.Wait = durationpb.New(r.Wait)
	}
	h.send(request)
	select {
	case answer := <-h.answers:
		return h.granted(answer)
	case <-r.Death:
		return nil, errors.New("the holder is dead")
	case <-ctx.Done():
		h.send(&messages.Cancel{Lock: h.lock})
	}
	hold, err := h.granted(<-h.answers)
	if err != nil {
		return nil, ctx.Err()
	}
	return hold, nil
}

func (h *holder) granted(answer any) (suite.Hold, error) {
	if m, ok := answer.(*messages.Acquired); ok {
		return &answered{h, m}, nil
	}
	return nil, refusal(answer)
}

// refusal is what an answer says that is not what was asked for.
func refusal(answer any) error {
	err := fmt.Errorf("answered %T{%v}", answer, answer)
	switch m := answer.(type) {
	case interface{ GetReason() messages.Reason }:
		for _, e := range errorsOfTheSuite {
			if m.GetReason() == e.reason {
				return errors.Join(err, e.theirs)
			}
		}
	case *actor.DeadLetterResponse: // Close has stopped the guardian
		return suite.ErrClosed
	}
	return err
}

// ask sends a request that is about no hold.
func (m *mailed) ask(request any) any {
	answer, err := m.actors.Root.RequestFuture(m.guardian(), request, redistest.Limit).Result()
	if err != nil {
		return err
	}
	return answer
}

// ForceRelease implements suite.Client.
func (m *mailed) ForceRelease(_ context.Context, lock string) (bool, error) {
	answer := m.ask(&messages.ForceRelease{Lock: m.message(lock)})
	if released, ok := answer.(*messages.ForceReleased); ok {
		return released.WasHeld, nil
	}
	return false, refusal(answer)
}

// Inspect implements suite.Client.
func (m *mailed) Inspect(_ context.Context, lock string) (suite.Status, error) {
	answer := m.ask(&messages.Inspect{Lock: m.message(lock)})
	s, ok := answer.(*messages.Status)
	if !ok {
		return suite.Status{}, refusal(answer)
	}
	return suite.Status{Locked: s.Locked, HeldHere: s.HeldHere, Count: int(s.HoldCount), Waiters: int(s.Waiters), Queue: int(s.Subscribers)}, nil
}

// answered is a hold by message.
type answered struct {
	*holder
	grant *messages.Acquired
}

// Release implements suite.Hold.
func (a *answered) Release(ctx context.Context) error {
	a.send(&messages.Release{Lock: a.lock, HoldId: a.grant.HoldId})
	select {
	case answer := <-a.answers:
		if _, ok := answer.(*messages.Released); ok {
			return nil
		}
		return refusal(answer)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lost implements suite.Hold.
func (a *answered) Lost() <-chan struct{} { return a.lost }

// Reenter implements suite.Hold.
func (a *answered) Reenter(ctx context.Context, r suite.Request) (suite.Hold, error) {
	return a.acquire(ctx, r)
}

// Count implements suite.Hold.
func (a *answered) Count() int { return int(a.grant.HoldCount) }

// Tokens implements suite.Hold.
func (a *answered) Tokens() []int64 {
	if len(a.grant.MemberTokens) > 0 {
		return a.grant.MemberTokens
	}
	return []int64{a.grant.Token}
}
