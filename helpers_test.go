package lockkeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// site is one process as far as locks go: an actor system, a client, a System.
type site struct {
	*lockkeeper.System
	actors *actor.ActorSystem
	client rueidis.Client
	// lame is set by tests that end with a Redis that confirms no release.
	lame bool
	// lending makes the site's helpers call with contexts that never end: such a caller
	// lends its goroutine for the commands that it waits for.
	lending bool
}

// open starts a site on a Redis, or on a proxy to one; it is closed when the test ends.
// What is injected comes between its actors and their messages.
func open(t testing.TB, url string, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) *site {
	t.Helper()
	client, err := lockkeeper.Connect(url)
	return openWith(t, client, err, cfg, func(s *actor.ActorSystem) { faultinject.Into(s, inject...) })
}

// openWith starts a site on what connecting gave, after its actor system was prepared.
func openWith(t testing.TB, client rueidis.Client, err error, cfg lockkeeper.Config, prepare ...func(*actor.ActorSystem)) *site {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{client: client, actors: actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))}
	for _, f := range prepare {
		f(s.actors)
	}
	if s.System, err = lockkeeper.New(s.actors, client, cfg); err != nil {
		client.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if err := s.Close(ctx); err != nil && !s.lame {
			t.Errorf("close: %v", err)
		}
		client.Close()
	})
	return s
}

// processes is how many actors and other processes the site's actor system has.
func (s *site) processes() (n int) {
	for _, shard := range s.actors.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += shard.Count()
	}
	return n
}

// within is a context that only a test that fails sees end.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
	t.Cleanup(cancel)
	return ctx
}

// context is what the site calls with.
func (s *site) context(t testing.TB) context.Context {
	if s.lending {
		return context.Background()
	}
	return within(t)
}

// await is what comes through a channel; the test ends if nothing does.
func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(redistest.Limit + time.Second):
		t.Fatalf("not within %v: %s", redistest.Limit, what)
		panic("not reached")
	}
}

// limited is for calls that nothing else would end.
func limited[T any](t testing.TB, what string, call func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- call() }()
	return await(t, what, done)
}

func (s *site) acquire(t testing.TB, k key, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return acquireIn(t, s.context(t), s, k, options...)
}

func acquireIn(t testing.TB, ctx context.Context, s *site, k key, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	g := limited(t, "the lock", func() (g grant) {
		g.hold, g.err = s.Lock(k.lock).Acquire(ctx, options...)
		return g
	})
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.hold
}

// grant is how an Acquire on a goroutine ended, and when.
type grant struct {
	hold *lockkeeper.Hold
	err  error
	at   time.Time
}

// acquireSoon acquires on a goroutine.
func (s *site) acquireSoon(t testing.TB, k key, options ...lockkeeper.Option) <-chan grant {
	ctx, granted := s.context(t), make(chan grant, 1)
	go func() {
		hold, err := s.Lock(k.lock).Acquire(ctx, options...)
		granted <- grant{hold, err, time.Now()}
	}()
	return granted
}

func got(t testing.TB, granted <-chan grant) grant {
	t.Helper()
	g := await(t, "the lock", granted)
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g
}

func release(t testing.TB, hold *lockkeeper.Hold) {
	t.Helper()
	releaseIn(t, within(t), hold)
}

func releaseIn(t testing.TB, ctx context.Context, hold *lockkeeper.Hold) {
	t.Helper()
	if err := limited(t, "the release", func() error { return hold.Release(ctx) }); err != nil {
		t.Fatal(err)
	}
}

func (s *site) release(t testing.TB, hold *lockkeeper.Hold) {
	t.Helper()
	releaseIn(t, s.context(t), hold)
}

func (s *site) inspect(t testing.TB, k key) lockkeeper.Status {
	t.Helper()
	status, err := s.Lock(k.lock).Inspect(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// awaitWaiters waits until so many requests of the site are queued.
func (s *site) awaitWaiters(t testing.TB, k key, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := s.Lock(k.lock).Inspect(within(t))
		if err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) { // just after a fault, connections may be broken
			t.Fatal(err)
		}
		return err == nil && status.Waiters == n
	})
}

// passes takes and gives back the lock: what went before has not broken it.
func (s *site) passes(t testing.TB, k key) {
	t.Helper()
	s.release(t, s.acquire(t, k))
	k.isFree(t)
}

// key is a lock as a foreign client sees it.
type key struct {
	server  *redistest.Server
	lock    string // the name for the API
	name    string // the key in Redis
	channel string
}

func newKey(t testing.TB, server *redistest.Server) key {
	name := redistest.Name(t)
	return key{server: server, lock: name, name: name, channel: "redisson_lock__channel:{" + name + "}"}
}

// redisson is an owner as Redisson writes it: client and thread.
const redisson = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57"

func (k key) do(t testing.TB, args ...string) rueidis.RedisResult {
	t.Helper()
	result := k.server.Do(t, args...)
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%q: %v", args, err)
	}
	return result
}

func (k key) number(t testing.TB, args ...string) int64 {
	t.Helper()
	n, err := k.do(t, args...).AsInt64()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return n
}

// atomically runs a script of Redisson's kind. What Redisson does at once must not be done
// here in steps, between which ours may come.
func (k key) atomically(t testing.TB, script string, keys []string, args ...string) {
	t.Helper()
	k.do(t, slices.Concat([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys, args)...)
}

// takeAs takes the lock as Redisson would, for ttl; a negative one is for ever.
func (k key) takeAs(t testing.TB, owner string, ttl time.Duration) {
	t.Helper()
	script := `redis.call('HSET', KEYS[1], ARGV[1], 1)`
	if ttl >= 0 {
		script += ` redis.call('PEXPIRE', KEYS[1], ARGV[2])`
	}
	k.atomically(t, script, []string{k.name}, owner, strconv.FormatInt(ttl.Milliseconds(), 10))
}

// unlock frees the lock as Redisson would.
func (k key) unlock(t testing.TB) {
	t.Helper()
	k.atomically(t, `redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[2], '0')`, []string{k.name, k.channel})
}

// owners is the hash: owner to hold count.
func (k key) owners(t testing.TB) map[string]string {
	t.Helper()
	m, err := k.do(t, "HGETALL", k.name).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// heldBy checks that the site is the one owner, with a hold count.
func (k key) heldBy(t testing.TB, s *site, count string) (owner string) {
	t.Helper()
	owners := k.owners(t)
	for owner = range owners {
		if len(owners) == 1 && len(owner) > len(s.ID()) && owner[:len(s.ID())] == s.ID() && owners[owner] == count {
			return owner
		}
	}
	t.Fatalf("%s is held by %v, want %s:<n> = %s", k.name, owners, s.ID(), count)
	return ""
}

func (k key) ttl(t testing.TB) time.Duration {
	t.Helper()
	return time.Duration(k.number(t, "PTTL", k.name)) * time.Millisecond
}

// expiry is when Redis will drop the key; the zero time if it has none.
func (k key) expiry(t testing.TB) time.Time {
	t.Helper()
	if at := k.number(t, "PEXPIRETIME", k.name); at >= 0 {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

func (k key) exists(t testing.TB) bool {
	t.Helper()
	return k.number(t, "EXISTS", k.name) == 1
}

func (k key) isFree(t testing.TB) {
	t.Helper()
	if owners := k.owners(t); len(owners) > 0 {
		t.Fatalf("%s is held by %v", k.name, owners)
	}
}

func (k key) awaitFree(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, k.name+" to be free", func() bool { return !k.exists(t) })
}

func (k key) awaitSubscribers(t testing.TB, n int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d subscribers of %s", n, k.channel), func() bool { return k.server.Subscribers(t, k.channel) == n })
}

// awaitListener waits until somebody listens and has tried in vain after that, so that
// only a message, the TTL or the poll bound brings the next try. The server must be
// the test's own, and nobody else refused since the last ResetStats.
func (k key) awaitListener(t testing.TB) {
	t.Helper()
	k.awaitSubscribers(t, 1)
	redistest.Eventually(t, "two refusals", func() bool { return k.server.Calls(t)["hrandfield"] >= 2 })
}

// ear hears what is published on a lock's channel.
type ear struct {
	client  rueidis.Client
	channel string
	mu      sync.Mutex
	heard   []string
}

func (k key) listen(t testing.TB) *ear {
	t.Helper()
	client, err := lockkeeper.Connect(k.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	connection, giveBack := client.Dedicate()
	t.Cleanup(func() { giveBack(); client.Close() })
	e := &ear{client: client, channel: k.channel}
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, m.Message)
	}})
	// By pattern: the processes under test must not take it for somebody who waits.
	err = connection.Do(within(t), connection.B().Psubscribe().Pattern(literally(k.channel)).Build()).Error()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// literally is the pattern that matches a name and nothing else.
func literally(name string) string {
	var pattern []byte
	for i := range len(name) {
		pattern = append(pattern, '\\', name[i])
	}
	return string(pattern)
}

// messages is what was heard so far. A mark of its own comes behind all of it.
func (e *ear) messages(t testing.TB) []string {
	t.Helper()
	const mark = "end"
	if err := e.client.Do(within(t), e.client.B().Publish().Channel(e.channel).Message(mark).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	var heard []string
	redistest.Eventually(t, "the mark", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.heard); n == 0 || e.heard[n-1] != mark {
			return false
		}
		heard, e.heard = e.heard[:len(e.heard)-1], nil
		return true
	})
	return heard
}

// probe is an actor, as far as others can tell: a process that keeps what it is sent.
type probe struct {
	site *site
	pid  *actor.PID
	mail chan any
	// notice sees every message first, and says whether it is to be kept.
	notice func(m any) bool
}

func (s *site) probe(t testing.TB) *probe {
	t.Helper()
	p := &probe{site: s, mail: make(chan any, 4096)}
	registry := s.actors.ProcessRegistry
	var ok bool
	if p.pid, ok = registry.Add(p, "probe"+registry.NextId()); !ok {
		t.Fatal("the probe's name is taken")
	}
	t.Cleanup(p.die)
	return p
}

// SendUserMessage implements actor.Process.
func (p *probe) SendUserMessage(_ *actor.PID, m any) {
	_, m, _ = actor.UnwrapEnvelope(m)
	if p.notice == nil || p.notice(m) {
		p.mail <- m
	}
}

// SendSystemMessage implements actor.Process.
func (p *probe) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (p *probe) Stop(*actor.PID) {}

// die makes whatever is sent from now on a dead letter.
func (p *probe) die() { p.site.actors.ProcessRegistry.Remove(p.pid) }

// send sends a request to the guardian, with the probe as its sender.
func (p *probe) send(m any) {
	p.site.actors.Root.RequestWithCustomSender(p.site.Guardian(), m, p.pid)
}

// next is the next message, which must be an M.
func next[M any](t testing.TB, p *probe) M {
	t.Helper()
	select {
	case m := <-p.mail:
		if as, ok := m.(M); ok {
			return as
		}
		t.Fatalf("the probe was sent %T{%v}, want %T", m, m, *new(M))
	case <-time.After(redistest.Limit):
		t.Fatalf("the probe was sent nothing, want %T", *new(M))
	}
	panic("not reached")
}

// ask sends a request and gives its answer, which must be an M.
func ask[M any](t testing.TB, p *probe, m any) M {
	t.Helper()
	p.send(m)
	return next[M](t, p)
}

func (k key) message() *messages.Lock { return &messages.Lock{Name: k.lock} }

// isError checks what an error is, and gives its reason.
func isError(t testing.TB, err, want error) messages.Reason {
	t.Helper()
	var as *lockkeeper.Error
	if !errors.Is(err, want) || !errors.As(err, &as) {
		t.Fatalf("error %v, want one that is %v", err, want)
	}
	return as.Reason
}

// users are actors of a site's that ask for locks.
func (s *site) users(server *redistest.Server) *tree {
	return &tree{system: s.actors, keeper: s.System, server: server}
}

// says checks that a text has all of these words.
func says(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
