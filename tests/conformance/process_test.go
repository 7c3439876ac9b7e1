package conformance_test

// A process under test, by calls and by messages.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// process has an actor system, and a System on each server.
type process struct {
	locktest.FaultInjector
	kind
	actors *actor.ActorSystem
	name   string // the client name of its connections to Redis
	sites  []*locktest.Site
	red    *lockkeeper.RedLock
}

// request is a request for the lock.
type request struct {
	lease, wait time.Duration
	try, once   bool
	death       <-chan struct{} // closed when the holder, an actor, dies
	permits     int             // of a kind with permits; 0 for all of them
}

// hold is a granted lock, by call or by message.
type hold struct {
	release func(context.Context) error
	reenter func(context.Context, request) (*hold, error)
	// extend gives the hold a fixed lease, or for 0 the lease of the watchdog.
	extend func(context.Context, time.Duration) error
	lost   <-chan struct{} // closed when the holder is notified of its loss
	count  int
	tokens []int64 // one for each member
}

// patient prevents that a busy machine renews a hold too late, or takes over a transfer too late.
var patient = lockkeeper.Config{
	Watchdog: 2 * redistest.Limit, Renewal: ttl / 3, CallTimeout: locktest.Soon, Poll: locktest.Soon / 2, WaiterTimeout: redistest.Limit,
}

// open opens a process, which is closed at the end of the test.
func (k kind) open(t testing.TB) *process {
	t.Helper()
	p := &process{kind: k, actors: quiet.ActorSystem(), name: uuid.NewString()}
	faultinject.Into(p.actors, p.Middleware)
	cfg := patient
	if k.brief {
		// A dead waiter of a fair lock is skipped after a TTL, its own timeout and a poll.
		cfg = lockkeeper.Config{Watchdog: ttl, Renewal: ttl / 10, CallTimeout: locktest.Soon, Poll: time.Second, WaiterTimeout: ttl / 2}
	}
	if k.polls {
		cfg.Poll = locktest.ShortTimeouts.Poll
	}
	cfg.KeyPrefix, cfg.Application = keyPrefix, "conformance"
	var systems []*lockkeeper.System
	for _, server := range k.servers {
		s := locktest.OpenIn(t, p.actors, locktest.Connect(t, k.url(server, p.name)), nil, cfg)
		p.sites, systems = append(p.sites, s), append(systems, s.System)
	}
	if len(systems) == 3 {
		var err error
		if p.red, err = lockkeeper.NewRedLock(systems...); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := p.close(locktest.Within(t)); err != nil && !p.sites[0].SkipCloseCheck {
			t.Errorf("close: %v", err)
		}
		*p = process{} // so that the test keeps no sites
	})
	return p
}

func (p *process) close(ctx context.Context) error {
	all := p.sites[p.home].Close(ctx) // first, while it can still release its holds on the others
	for _, s := range p.sites {
		all = errors.Join(all, s.Close(ctx))
	}
	return all
}

// kill disconnects the process from Redis for good. Closing a client would leave the connection for messages open.
func (p *process) kill(t testing.TB) {
	t.Helper()
	for i, s := range p.sites {
		s.SkipCloseCheck = true
		s.Client.Close()
		p.servers[i].KillClientsOf(t, p.name)
	}
}

func (p *process) lockNamed(name string) *lockkeeper.Lock { return p.lock(p, name) }

func (p *process) acquire(ctx context.Context, name string, r request) (*hold, error) {
	if p.byMessage {
		return p.holder(name, r.death).acquire(ctx, r)
	}
	var options []lockkeeper.Option
	if r.lease != 0 {
		options = append(options, lockkeeper.WithLease(r.lease))
	}
	if r.wait != 0 {
		options = append(options, lockkeeper.WithWait(r.wait))
	}
	if r.once {
		options = append(options, lockkeeper.WithoutReentry())
	}
	h, err := p.call(ctx, name, r, options)
	if err != nil {
		return nil, err
	}
	lost := make(chan struct{})
	context.AfterFunc(h.Context(), func() {
		if errors.Is(h.Err(), lockkeeper.ErrLost) {
			close(lost)
		}
	})
	count, tokens := 1, []int64(nil)
	if h, is := h.(*lockkeeper.Hold); is {
		if count, tokens = h.Count(), h.MemberTokens(); tokens == nil {
			tokens = []int64{h.Token()}
		}
	}
	reenter := func(_ context.Context, r request) (*hold, error) { return p.acquire(h.Context(), name, r) }
	extend := func(ctx context.Context, lease time.Duration) error {
		if lease == 0 {
			return h.KeepAlive(ctx)
		}
		return h.Extend(ctx, lease)
	}
	return &hold{release: h.Release, reenter: reenter, extend: extend, lost: lost, count: count, tokens: tokens}, nil
}

// called is what a call has granted: a *lockkeeper.Hold or a *lockkeeper.Permit.
type called interface {
	Context() context.Context
	Err() error
	Extend(ctx context.Context, d time.Duration) error
	KeepAlive(ctx context.Context) error
	Release(ctx context.Context) error
}

func (p *process) call(ctx context.Context, name string, r request, options []lockkeeper.Option) (called, error) {
	switch {
	case p.permits > 0 && r.try:
		return p.semaphore(name).TryAcquire(ctx, append(options, lockkeeper.WithPermits(p.wanted(r)))...)
	case p.permits > 0:
		return p.semaphore(name).Acquire(ctx, append(options, lockkeeper.WithPermits(p.wanted(r)))...)
	case r.try:
		return p.lockNamed(name).TryAcquire(ctx, options...)
	}
	return p.lockNamed(name).Acquire(ctx, options...)
}

// state is the state of a lock, as one process sees it.
type state struct {
	locked, heldHere      bool
	count, waiters, queue int
}

func (p *process) inspect(ctx context.Context, name string) (state, error) {
	if !p.byMessage && p.permits == 0 {
		s, err := p.lockNamed(name).Inspect(ctx)
		return state{s.Locked, s.HeldHere, s.HoldCount, s.Waiters, s.Subscribers}, err
	}
	answer := p.ask(&messages.Inspect{Lock: p.message(name)})
	s, ok := answer.(*messages.Status)
	if !ok {
		return state{}, refusal(answer)
	}
	return state{s.Locked, s.HeldHere, int(s.HoldCount), int(s.Waiters), int(s.Subscribers)}, nil
}

func (p *process) forceRelease(ctx context.Context, name string) (wasHeld bool, err error) {
	if !p.byMessage {
		return p.lockNamed(name).ForceRelease(ctx)
	}
	answer := p.ask(&messages.ForceRelease{Lock: p.message(name)})
	if released, ok := answer.(*messages.ForceReleased); ok {
		return released.WasHeld, nil
	}
	return false, refusal(answer)
}

// crash makes the lock actor crash, before and after it handles a message.
func (p *process) crash(t *trial, message string, provoke func()) {
	for _, hit := range []func(which func(any) bool){
		func(which func(any) bool) { p.Hit(which, nil) },
		func(which func(any) bool) { p.Hit(nil, which) },
	} {
		crashes := p.Count.Load()
		hit(locktest.Once(message))
		redistest.Eventually(t, "a crash over "+message, func() bool {
			provoke()
			return p.Count.Load() > crashes
		})
		p.Hit(nil, nil)
	}
}

func (p *process) guardian() *actor.PID { return p.sites[p.home].Guardian() }

// ask sends a request that concerns no hold.
func (p *process) ask(request any) any {
	answer, err := p.actors.Root.RequestFuture(p.guardian(), request, redistest.Limit).Result()
	if err != nil {
		return err
	}
	return answer
}

// holder is an actor that acquires a lock.
type holder struct {
	process *process
	lock    *messages.Lock
	pid     *actor.PID
	answers chan any
	lost    chan struct{}
}

func (p *process) holder(name string, death <-chan struct{}) *holder {
	h := &holder{process: p, lock: p.message(name), answers: make(chan any, 16), lost: make(chan struct{})}
	lose := sync.OnceFunc(func() { close(h.lost) })
	h.pid = p.actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch message := c.Message().(type) {
		case *messages.LeaseLost:
			lose()
		case *messages.Cancelled, *messages.LeaseAtRisk:
		case proto.Message:
			h.answers <- message
		}
	}))
	if death != nil {
		go func() {
			<-death
			p.actors.Root.Stop(h.pid)
		}()
	}
	return h
}

func (h *holder) send(m proto.Message) {
	h.process.actors.Root.RequestWithCustomSender(h.process.guardian(), m, h.pid)
}

func (h *holder) acquire(ctx context.Context, r request) (*hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	acquire := &messages.Acquire{Lock: h.lock, NoReentry: r.once, Permits: int32(h.process.wanted(r))}
	if r.lease != 0 {
		acquire.Lease = durationpb.New(r.lease)
	}
	if r.wait != 0 || r.try {
		acquire.Wait = durationpb.New(r.wait)
	}
	h.send(acquire)
	select {
	case answer := <-h.answers:
		return h.granted(answer)
	case <-r.death:
		return nil, errors.New("the holder is dead")
	case <-ctx.Done():
		h.send(&messages.Cancel{Lock: h.lock})
	}
	granted, err := h.granted(<-h.answers)
	if err != nil {
		return nil, ctx.Err()
	}
	return granted, nil
}

func (h *holder) granted(answer any) (*hold, error) {
	m, ok := answer.(*messages.Acquired)
	if !ok {
		return nil, refusal(answer)
	}
	tokens := m.MemberTokens
	if len(tokens) == 0 {
		tokens = []int64{m.Token}
	}
	release := func(ctx context.Context) error { return h.release(ctx, m.HoldId) }
	extend := func(ctx context.Context, lease time.Duration) error { return h.extend(ctx, m.HoldId, lease) }
	return &hold{release: release, reenter: h.acquire, extend: extend, lost: h.lost, count: int(m.HoldCount), tokens: tokens}, nil
}

func (h *holder) release(ctx context.Context, id string) error {
	return ask[*messages.Released](ctx, h, &messages.Release{Lock: h.lock, HoldId: id})
}

func (h *holder) extend(ctx context.Context, id string, lease time.Duration) error {
	m := &messages.Extend{Lock: h.lock, HoldId: id}
	if lease != 0 {
		m.Lease = durationpb.New(lease)
	}
	return ask[*messages.Extended](ctx, h, m)
}

// ask sends a request about a hold, and returns the error of its answer.
func ask[Answer any](ctx context.Context, h *holder, request proto.Message) error {
	h.send(request)
	select {
	case answer := <-h.answers:
		if _, ok := answer.(Answer); ok {
			return nil
		}
		return refusal(answer)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusal is the error in an unexpected answer.
func refusal(answer any) error {
	if err := lockkeeper.ErrorOf(answer); err != nil {
		return err
	}
	return fmt.Errorf("answered %T{%v}", answer, answer)
}
