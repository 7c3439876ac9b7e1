package actors

// What the tests of this package share: a System, and what they do with its locks.

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// TestMain stops the shared redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) { redistest.Main(m) }

// start brings up a system on the shared server, whose lock actors leave when they were idle for so long.
func start(t *testing.T, idle time.Duration) *Runtime {
	t.Helper()
	return startOn(t, redistest.Shared(t).URL(), func(cfg *Config) { cfg.Idle = idle })
}

// startOn brings up a system on a Redis, with a changed configuration, and middleware for its actors.
func startOn(t *testing.T, url string, change func(cfg *Config), inject ...actor.ReceiverMiddleware) *Runtime {
	t.Helper()
	client, err := redisio.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	system := quiet.ActorSystem()
	faultinject.Into(system, inject...)
	cfg := Config{
		Config: machine.Config{
			Watchdog: time.Minute, Renewal: 20 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
			Poll: time.Second, CallTimeout: 2 * time.Second, QueueLimit: 100,
		},
		WaiterTimeout: 5 * time.Second, Logger: system.Logger(),
	}
	change(&cfg)
	r := Start(system, client, cfg)
	t.Cleanup(func() {
		r.Close(nil)
		client.Close()
	})
	return r
}

// call makes a call, and returns its answer.
func (r *Runtime) call(t *testing.T, call *request.Call) request.Outcome {
	t.Helper()
	out, _ := r.Do(t.Context(), call)
	return out
}

// take acquires a free lock.
func (r *Runtime) take(t *testing.T, acquire *request.Call) (granted request.Outcome) {
	t.Helper()
	if granted = r.call(t, acquire); granted.Kind != machine.Granted {
		t.Errorf("%s: the request for a free lock was answered %+v", acquire.Name, granted)
	}
	return granted
}

// giveBack releases what a call has acquired.
func (r *Runtime) giveBack(t *testing.T, acquire *request.Call, granted request.Outcome) {
	t.Helper()
	if freed := r.call(t, acquire.About(request.OpRelease, granted.HoldID)); freed.Kind != machine.Freed {
		t.Errorf("%s: the release was answered %+v", acquire.Name, freed)
	}
}

// use takes and gives back a lock.
func (r *Runtime) use(t *testing.T, name string) (granted request.Outcome) {
	t.Helper()
	acquire := &request.Call{Op: request.OpAcquire, Name: name}
	granted = r.take(t, acquire)
	r.giveBack(t, acquire, granted)
	return granted
}

// aroundEach calls a function for each message of an actor that is spawned from now on; handle has the actor handle it.
func (r *Runtime) aroundEach(do func(m any, handle func())) {
	r.injected = append(r.injected, func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) { do(e.Message, func() { next(c, e) }) }
	})
}

// adapt replaces the adapter of each lock actor that starts from now on.
func (r *Runtime) adapt(with func(a *lockActor) kinds.Adapter) {
	r.aroundEach(func(m any, handle func()) {
		if next, ok := m.(*shell.Entering); ok {
			a := next.Tenant.(*lockActor)
			a.adapter = with(a)
		}
		handle()
	})
}

// leave makes an idle lock actor leave its shell to the next.
func (r *Runtime) leave(t *testing.T, name string) (left *lockActor) {
	t.Helper()
	left = r.locks.Get(kinds.Key{Name: name})
	r.crowded.Store(true)
	left.post(leaveIfIdle{left})
	redistest.Eventually(t, "the lock actor to leave", func() bool { return left.shell.Tenant() == nil })
	return left
}
