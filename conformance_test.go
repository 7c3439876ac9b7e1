package lockkeeper_test

// The conformance suite over every kind of lock, by the Go API and by message.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/conformance"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// conforming is a kind of lock as the suite tests it.
type conforming struct {
	// servers is how many it takes; each process has a System on each of them.
	servers int
	// home is on which of them the lock actor is.
	home int
	// once refuses re-entries.
	once bool
	// ordered is granted in the order of the requests over all processes.
	ordered bool
	// lock is the lock of a name; its System on the first server is called on.
	lock func(p *process, name string) *lockkeeper.Lock
	// message is the same lock by message; nil if messages cannot name it.
	message func(name string) *messages.Lock
	// keys, one of them per server and the last again for further servers, are what to
	// delete so that the lock is gone. Default: its name, on every server.
	keys func(name string) []string
}

func ofKind(kind messages.Kind) func(name string) *messages.Lock {
	return func(name string) *messages.Lock { return &messages.Lock{Name: name, Kind: kind} }
}

// mixed are the members of a MultiLock.
func mixed(name string) []*messages.Lock {
	return []*messages.Lock{
		{Name: name + "write", Kind: messages.Kind_KIND_READ_WRITE},
		{Name: name + "fenced", Kind: messages.Kind_KIND_FENCED},
		{Name: name + "plain"},
		{Name: name + "fair", Kind: messages.Kind_KIND_FAIR},
		{Name: name + "more", Kind: messages.Kind_KIND_FENCED},
	}
}

// multi spreads them over so many Systems.
func multi(p *process, name string, systems int) *lockkeeper.Lock {
	var locks []*lockkeeper.Lock
	for i, m := range mixed(name) {
		s := p.systems[i%systems]
		switch m.Kind {
		case messages.Kind_KIND_READ_WRITE:
			locks = append(locks, s.ReadWriteLock(m.Name).Write())
		case messages.Kind_KIND_FENCED:
			locks = append(locks, s.FencedLock(m.Name))
		case messages.Kind_KIND_FAIR:
			locks = append(locks, s.FairLock(m.Name))
		default:
			locks = append(locks, s.Lock(m.Name))
		}
	}
	return lockkeeper.MultiLock(locks...)
}

var kinds = map[string]conforming{
	"plain": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].Lock(name) },
		message: ofKind(messages.Kind_KIND_REENTRANT),
	},
	"without re-entry": {
		once:    true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].Lock(name) },
		message: ofKind(messages.Kind_KIND_REENTRANT),
	},
	"fenced": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FencedLock(name) },
		message: ofKind(messages.Kind_KIND_FENCED),
	},
	"fair": {
		ordered: true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FairLock(name) },
		message: ofKind(messages.Kind_KIND_FAIR),
	},
	"fair without re-entry": {
		ordered: true, once: true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FairLock(name) },
		message: ofKind(messages.Kind_KIND_FAIR),
	},
	"write": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].ReadWriteLock(name).Write() },
		message: ofKind(messages.Kind_KIND_READ_WRITE),
	},
	"multi": {
		lock: func(p *process, name string) *lockkeeper.Lock { return multi(p, name, 1) },
		message: func(name string) *messages.Lock {
			return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: mixed(name)}
		},
		keys: func(name string) []string { return []string{name + "fair"} }, // one of them is the end of all
	},
	"multi on two servers": {
		servers: 2, home: 1, // that of the member whose name comes first
		lock: func(p *process, name string) *lockkeeper.Lock { return multi(p, name, 2) },
		keys: func(name string) []string { return []string{"", name + "fenced"} },
	},
	"red": {
		servers: 3,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.red.Lock(name) },
		message: ofKind(messages.Kind_KIND_RED),
		keys:    func(name string) []string { return []string{"", name} }, // on a majority
	},
}

func TestConformance(t *testing.T) {
	var servers []*redistest.Server
	for range 3 {
		s := redistest.Start(t)
		s.Do(t, "PING") // its own client is there before the suite counts goroutines
		servers = append(servers, s)
	}
	adapters := map[string]conformance.Adapter{}
	for name, k := range kinds {
		a := adapter{conforming: k, servers: servers[:max(k.servers, 1)]}
		adapters[name] = a
		if k.message != nil {
			a.byMessage = true
			adapters[name+" by message"] = a
		}
	}
	conformance.RunAll(t, adapters)
}

// adapter makes a kind of lock known to the suite.
type adapter struct {
	conforming
	servers   []*redistest.Server
	byMessage bool
}

// looking keeps the cases from using a server's own client together: it would start
// goroutines for that, which stay.
var looking sync.Mutex

// watchdog is long enough for a machine that does a lot besides.
const watchdog = 5 * time.Second

// Traits implements conformance.Adapter.
func (a adapter) Traits() conformance.Traits {
	return conformance.Traits{TTL: watchdog, RefusesReentry: a.once, Ordered: a.ordered}
}

// Left implements conformance.Adapter: every key and every channel that has the lock's
// name in it. The counters of the tokens stay for ever, so that no token comes again.
func (a adapter) Left(t testing.TB, lock string) (left []string) {
	looking.Lock()
	defer looking.Unlock()
	for _, s := range a.servers {
		for _, key := range s.Keys(t, "*"+lock+"*") {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				left = append(left, key)
			}
		}
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", "*"+lock+"*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, channels...)
	}
	return left
}

// Delete implements conformance.Deleter.
func (a adapter) Delete(t testing.TB, lock string) {
	looking.Lock()
	defer looking.Unlock()
	keys := []string{lock}
	if a.keys != nil {
		keys = a.keys(lock)
	}
	for i, s := range a.servers {
		if key := keys[min(i, len(keys)-1)]; key != "" {
			// A RedLock is granted by a majority; the others' votes may still be on their way.
			redistest.Eventually(t, key+" to be there and deleted", func() bool {
				n, err := s.Do(t, "DEL", key).AsInt64()
				return err == nil && n == 1
			})
		}
	}
}

// process is what a process has: an actor system, and a System on each server.
type process struct {
	saboteur
	kind    conforming
	actors  *actor.ActorSystem
	clients []rueidis.Client
	systems []*lockkeeper.System
	red     *lockkeeper.Red
	killed  bool
	// home is the System that has the lock actor.
	home *lockkeeper.System
}

// Open implements conformance.Adapter.
func (a adapter) Open(t testing.TB) conformance.Client {
	t.Helper()
	p := &process{kind: a.conforming, actors: quietActorSystem()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if p.killed {
			cancel()
		}
		if err := p.Close(ctx); err != nil && !p.killed {
			t.Errorf("close: %v", err)
		}
		for _, c := range p.clients {
			c.Close()
		}
	})
	for _, s := range a.servers {
		client, err := lockkeeper.Connect(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		p.clients = append(p.clients, client)
		system, err := lockkeeper.New(p.actors, client, lockkeeper.Config{
			Watchdog: watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: 5 * time.Second,
			Middleware: []actor.ReceiverMiddleware{p.middleware},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.systems = append(p.systems, system)
	}
	p.home = p.systems[a.home]
	if len(p.systems) == 3 {
		var err error
		if p.red, err = lockkeeper.RedLock(p.systems...); err != nil {
			t.Fatal(err)
		}
	}
	if a.byMessage {
		return &mailed{process: p}
	}
	return p
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
				before, after := once(message), (func(any) bool)(nil)
				if when == "after" {
					before, after = after, before
				}
				crashes := p.crashes.Load()
				p.hit(before, after)
				redistest.Eventually(t, "the crash", func() bool {
					switch { // ticks and replies come by themselves, with the next renewal
					case message == "*actors.Call":
						_, _ = p.kind.lock(p, lock).Inspect(context.Background())
					case message == "*messages.Inspect":
						p.actors.Root.Send(p.home.Guardian(), &messages.Inspect{Lock: p.kind.message(lock)})
					}
					return p.crashes.Load() > crashes
				})
				p.hit(nil, nil)
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

// mailed is a process whose locks are asked for by message. Every holder is an actor.
type mailed struct{ *process }

// holder is an actor that asks for a lock.
type holder struct {
	process *process
	lock    *messages.Lock
	pid     *actor.PID
	answers chan proto.Message
	lost    chan struct{}
	once    sync.Once
}

func (m *mailed) holder(lock string) *holder {
	h := &holder{process: m.process, lock: m.kind.message(lock), answers: make(chan proto.Message, 16), lost: make(chan struct{})}
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
	h.process.actors.Root.RequestWithCustomSender(h.process.home.Guardian(), m, h.pid)
}

// Acquire implements conformance.Client.
func (m *mailed) Acquire(ctx context.Context, lock string, r conformance.Request) (conformance.Hold, error) {
	return m.holder(lock).acquire(ctx, nil, r)
}

// AcquireUntil implements conformance.Mortal.
func (m *mailed) AcquireUntil(ctx context.Context, death <-chan struct{}, lock string, r conformance.Request) (conformance.Hold, error) {
	h := m.holder(lock)
	go func() {
		<-death
		m.actors.Root.Stop(h.pid)
	}()
	return h.acquire(ctx, death, r)
}

var errDead = errors.New("the holder is dead")

func (h *holder) acquire(ctx context.Context, death <-chan struct{}, r conformance.Request) (conformance.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request := &messages.Acquire{Lock: h.lock, NoReentry: h.process.kind.once}
	if r.Lease != 0 {
		request.Lease = durationpb.New(r.Lease)
	}
	if r.Wait != 0 {
		request.Wait = durationpb.New(r.Wait)
	}
	if r.Try {
		request.Wait = durationpb.New(0)
	}
	h.send(request)
	select {
	case answer := <-h.answers:
		return h.granted(answer)
	case <-death:
		return nil, errDead
	case <-ctx.Done():
		h.send(&messages.Cancel{Lock: h.lock})
	}
	hold, err := h.granted(<-h.answers)
	if err != nil {
		return nil, ctx.Err()
	}
	return hold, nil
}

func (h *holder) granted(answer proto.Message) (conformance.Hold, error) {
	switch m := answer.(type) {
	case *messages.Acquired:
		hold := &answered{holder: h, id: m.HoldId, count: int(m.HoldCount)}
		switch {
		case len(m.MemberTokens) > 0:
			return &tokened{hold, m.MemberTokens}, nil
		case h.lock.Kind == messages.Kind_KIND_FENCED:
			return &tokened{hold, []int64{m.Token}}, nil
		}
		return hold, nil
	case *messages.NotAcquired:
		return nil, reasoned(m.Reason, m.Detail)
	}
	return nil, fmt.Errorf("answered %T{%v}", answer, answer)
}

func reasoned(reason messages.Reason, detail string) error {
	err := fmt.Errorf("%v: %s", reason, detail)
	all := map[messages.Reason]error{
		messages.Reason_REASON_HELD:        conformance.ErrHeld,
		messages.Reason_REASON_TIMED_OUT:   conformance.ErrTimeout,
		messages.Reason_REASON_CLOSED:      conformance.ErrClosed,
		messages.Reason_REASON_REENTRY:     conformance.ErrReentry,
		messages.Reason_REASON_LOST:        conformance.ErrLost,
		messages.Reason_REASON_NOT_HELD:    conformance.ErrNotHeld,
		messages.Reason_REASON_UNAVAILABLE: conformance.ErrUnavailable,
	}
	return errors.Join(err, all[reason])
}

// answered is a hold by message.
type answered struct {
	*holder
	id    string
	count int
}

// tokened is one with tokens.
type tokened struct {
	*answered
	tokens []int64
}

// Tokens implements conformance.Tokened.
func (t *tokened) Tokens() []int64 { return t.tokens }

// Release implements conformance.Hold.
func (a *answered) Release(ctx context.Context) error {
	a.send(&messages.Release{Lock: a.holder.lock, HoldId: a.id})
	select {
	case answer := <-a.answers:
		switch m := answer.(type) {
		case *messages.Released:
			return nil
		case *messages.NotReleased:
			return reasoned(m.Reason, m.Detail)
		}
		return fmt.Errorf("answered %T{%v}", answer, answer)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lost implements conformance.Hold.
func (a *answered) Lost() <-chan struct{} { return a.lost }

// Reenter implements conformance.Reenterer.
func (a *answered) Reenter(ctx context.Context, r conformance.Request) (conformance.Hold, error) {
	return a.acquire(ctx, nil, r)
}

// Count implements conformance.Reenterer.
func (a *answered) Count() int { return a.count }

// What the suite is to find, so that it leaves out nothing.
var (
	_ conformance.Deleter       = adapter{}
	_ conformance.ForceReleaser = (*process)(nil)
	_ conformance.Inspector     = (*process)(nil)
	_ conformance.Killer        = (*process)(nil)
	_ conformance.Crasher       = (*process)(nil)
	_ conformance.Mortal        = (*mailed)(nil)
	_ conformance.Reenterer     = (*called)(nil)
	_ conformance.Reenterer     = (*answered)(nil)
	_ conformance.Tokened       = (*numbered)(nil)
	_ conformance.Tokened       = (*tokened)(nil)
)
