package locks_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/niltest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// No exported function or method panics with a nil or zero argument, or on a nil or zero value: it returns
// ErrInvalid, and changes nothing.
func TestNilArguments_AreInvalid(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	good := map[reflect.Type]any{
		reflect.TypeFor[context.Context]():                    locktest.Within(t),
		reflect.TypeFor[lockkeeper.Option]():                  lockkeeper.WithWait(time.Second),
		reflect.TypeFor[lockkeeper.WaitOption]():              lockkeeper.WithWait(time.Second),
		reflect.TypeFor[lockkeeper.WorkOption]():              lockkeeper.WithDrain(time.Second),
		reflect.TypeFor[lockkeeper.LeadOption]():              lockkeeper.WithEnded(func(error) {}),
		reflect.TypeFor[func(ctx context.Context) error]():    func(context.Context) error { return nil },
		reflect.TypeFor[time.Duration]():                      time.Second,
		reflect.TypeFor[int]():                                1,
		reflect.TypeFor[int64]():                              int64(1),
		reflect.TypeFor[*actor.ActorSystem]():                 quiet.ActorSystem(),
		reflect.TypeFor[*actor.RootContext]():                 s.Actors.Root,
		reflect.TypeFor[*actor.PID]():                         s.Guardian(),
		reflect.TypeFor[any]():                                "a message",
		reflect.TypeFor[rueidis.Client]():                     s.Client,
		reflect.TypeFor[lockkeeper.Config]():                  lockkeeper.Config{},
		reflect.TypeFor[*lockkeeper.Lock]():                   s.Lock(k.LockName),
		reflect.TypeFor[*lockkeeper.System]():                 s.System,
		reflect.TypeFor[lockkeeper.OpenOption]():              lockkeeper.WithUser("locker", ""),
		reflect.TypeFor[*messages.Lock]():                     locktest.KindMessage("fair", k.LockName+" fair"),
		reflect.TypeFor[func(context.Context) *actor.Props](): func(context.Context) *actor.Props { return nil },
		reflect.TypeFor[*tls.Config]():                        &tls.Config{},
		reflect.TypeFor[func(*rueidis.ClientOption)]():        func(*rueidis.ClientOption) {},
		reflect.TypeFor[func(left time.Duration)]():           func(time.Duration) {},
		reflect.TypeFor[func(error)]():                        func(error) {},
	}
	hold := locktest.Acquire(t, s.FencedLock(k.LockName+" held"))
	locktest.Must(s.ExpirableSemaphore(k.LockName+" permits").TrySetPermits(locktest.Within(t), 1))(t)
	permit := locktest.Must(s.ExpirableSemaphore(k.LockName + " permits").Acquire(locktest.Within(t)))(t)
	owner := ownersOf(t, s.FencedLock(k.LockName+" held"))[0]
	texts := map[string]string{ // for the functions that take no name
		"Open": k.Server.URL(), "Lock.ForceRelease": owner, "ExpirableSemaphore.ReleaseID": strings.Repeat("0", 32),
	}
	multi := lockkeeper.MultiLock(s.Lock(k.LockName+" 1"), s.Lock(k.LockName+" 2"))
	api := niltest.API{
		Dir: "../..", Invalid: lockkeeper.ErrInvalid,
		Functions: map[string]any{
			"Ask": lockkeeper.Ask, "Connect": lockkeeper.Connect, "ConnectLater": lockkeeper.ConnectLater, "ErrorOf": lockkeeper.ErrorOf,
			"From": lockkeeper.From, "HoldFrom": lockkeeper.HoldFrom, "MultiLock": lockkeeper.MultiLock, "New": lockkeeper.New, "Open": lockkeeper.Open,
			"NewRedLock": lockkeeper.NewRedLock, "Request": lockkeeper.Request, "TraceOf": lockkeeper.TraceOf,
			"WithActorSystem": lockkeeper.WithActorSystem, "WithAtLeast": lockkeeper.WithAtLeast,
			"WithAtRisk": lockkeeper.WithAtRisk, "WithClientOption": lockkeeper.WithClientOption,
			"WithConfig": lockkeeper.WithConfig,
			"WithDrain":  lockkeeper.WithDrain, "WithEnded": lockkeeper.WithEnded,
			"WithLease": lockkeeper.WithLease, "WithMaxHold": lockkeeper.WithMaxHold, "WithNote": lockkeeper.WithNote, "WithPermits": lockkeeper.WithPermits,
			"WithTLS": lockkeeper.WithTLS, "WithTrace": lockkeeper.WithTrace, "WithUser": lockkeeper.WithUser,
			"WithWait": lockkeeper.WithWait, "WithoutReentry": lockkeeper.WithoutReentry,
		},
		Types: map[string][]any{
			"Claim": {(*lockkeeper.Claim)(nil), &lockkeeper.Claim{}},
			"Error": {(*lockkeeper.Error)(nil), &lockkeeper.Error{}},
			"Hold":  {(*lockkeeper.Hold)(nil), &lockkeeper.Hold{}, hold},
			"Latch": {(*lockkeeper.Latch)(nil), &lockkeeper.Latch{}, s.Latch(k.LockName + " latch")},
			"Lock": {
				(*lockkeeper.Lock)(nil), &lockkeeper.Lock{}, s.Lock(k.LockName), s.FairLock(k.LockName + " fair"),
				s.FencedLock(k.LockName + " held"), multi, lockkeeper.MultiLock(nil),
			},
			"Permit":             {(*lockkeeper.Permit)(nil), &lockkeeper.Permit{}, permit},
			"ExpirableSemaphore": {(*lockkeeper.ExpirableSemaphore)(nil), &lockkeeper.ExpirableSemaphore{}, s.ExpirableSemaphore(k.LockName + " permits")},
			"Process":            {lockkeeper.Process{}},
			"ReadWrite":          {(*lockkeeper.ReadWrite)(nil), &lockkeeper.ReadWrite{}, s.ReadWriteLock(k.LockName + " rw")},
			"RedLock":            {(*lockkeeper.RedLock)(nil), &lockkeeper.RedLock{}},
			"Semaphore":          {(*lockkeeper.Semaphore)(nil), &lockkeeper.Semaphore{}, s.Semaphore(k.LockName + " semaphore")},
			"Singleton":          {(*lockkeeper.Singleton)(nil), &lockkeeper.Singleton{}, s.Singleton(k.LockName + " singleton")},
			"System":             {(*lockkeeper.System)(nil), &lockkeeper.System{}, s.System},
		},
		Good: func(name string, t reflect.Type) (reflect.Value, bool) {
			v, ok := good[t]
			if t == reflect.TypeFor[string]() {
				v, ok = cmp.Or(texts[name], k.LockName), true
			}
			return reflect.ValueOf(v), ok
		},
		Accepts: []string{"Claim.Err", "Error.Unwrap", "ErrorOf"},
	}
	api.Check(t)

	locktest.ExpectValid(t, hold)
	locktest.Release(t, hold)
	locktest.Check(t, permit.Err())
	locktest.Check(t, permit.Release(locktest.Within(t)))
	s.ExpectGranted(t, k) // the System is open, and nothing is held
}

// ownersOf returns the owners of a lock that is held.
func ownersOf(t *testing.T, lock *lockkeeper.Lock) []string {
	t.Helper()
	status, err := lock.Inspect(locktest.Within(t))
	if err != nil || len(status.Owners) == 0 {
		t.Fatalf("the owners are %v: %v", status.Owners, err)
	}
	return status.Owners
}

// Functions and answers that are nil are refused as well, and a nil context does not resign.
func TestNilFunctions_AreRefused(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	do, _, done := spawner(s)
	do(func(ctx actor.Context) { s.Lock(k.LockName).Spawn(ctx, nil) })
	locktest.IsError(t, locktest.Await(t, "the end of no work", done).Err, lockkeeper.ErrInvalid, "the function is nil")

	locktest.IsError(t, s.Lock(k.LockName).Do(locktest.Within(t), func(context.Context) error {
		t.Error("work was done with a nil option")
		return nil
	}, lockkeeper.WithAtRisk(nil)), lockkeeper.ErrInvalid, "WithAtRisk is nil")

	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			s.Lock(k.LockName).Respond(ctx, func(context.Context) error {
				t.Error("work was done though its answer cannot be made")
				return nil
			}, nil)
		}
	}))
	answer := locktest.Must(lockkeeper.Ask(locktest.Within(t), s.Actors.Root, pid, "work"))(t)
	locktest.IsError(t, lockkeeper.ErrorOf(answer), lockkeeper.ErrInvalid, "answer is nil")

	locktest.IsError(t, s.Lock(k.LockName).Lead(nil)(locktest.Within(t)), lockkeeper.ErrInvalid, "the function is nil")
	leads := make(chan context.Context)
	resign := s.Lock(k.LockName).Lead(func(ctx context.Context) error { leads <- ctx; <-ctx.Done(); return nil })
	ctx := locktest.Await(t, "the leader", leads)
	var none context.Context
	locktest.IsError(t, resign(none), lockkeeper.ErrInvalid, "the context is nil")
	if ctx.Err() != nil {
		t.Error("a nil context has ended the term")
	}
	locktest.Check(t, resign(locktest.Within(t)))

	c := &candidate{site: s, pid: s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(nil))}
	c.awaitEnd(t)
	terms := make(chan bool, 2)
	c.pid = s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(context.Context) *actor.Props {
		select {
		case terms <- true:
		default:
		}
		return nil
	}))
	for range 2 {
		locktest.Await(t, "a term", terms)
	}
	s.Actors.Root.Stop(c.pid)
	c.awaitEnd(t)
	k.AwaitFree(t)
}

// Every message, nil or empty, is answered with an error that names its fault, and so is a message that is not a
// request.
func TestNilMessages_AreAnswered(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lockkeeper.Config{
		"": {}, "behind middleware": {Middleware: []actor.ReceiverMiddleware{locktest.Around(func(_ actor.ReceiverContext, _ any, pass func()) { pass() })}},
	} {
		s, k := locktest.New(t, cfg)
		p := s.Probe(t)
		all := (*messages.Lock)(nil).ProtoReflect().Descriptor().ParentFile().Messages()
		for i := range all.Len() {
			kind := locktest.Must(protoregistry.GlobalTypes.FindMessageByName(all.Get(i).FullName()))(t)
			for what, m := range map[string]any{"nil": kind.Zero().Interface(), "empty": kind.New().Interface()} {
				p.Send(m)
				answer := locktest.Next[any](t, p)
				if err := lockkeeper.ErrorOf(answer); !errors.Is(err, lockkeeper.ErrInvalid) {
					t.Errorf("%s: %s %s: answered %T %v", name, what, kind.Descriptor().Name(), answer, answer)
				}
			}
		}
		for _, m := range []any{
			&messages.Acquire{Lock: &messages.Lock{}}, &messages.Acquire{Lock: &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: []*messages.Lock{nil}}},
			&messages.Acquire{Lock: k.Message(), Lease: &durationpb.Duration{}}, &messages.AcquirePermits{Semaphore: &messages.Semaphore{}},
			&messages.CountDown{Latch: &messages.Latch{}}, struct{}{}, (*actor.PID)(nil), nil,
		} {
			p.Send(m)
			if err := lockkeeper.ErrorOf(locktest.Next[any](t, p)); !errors.Is(err, lockkeeper.ErrInvalid) {
				t.Errorf("%s: %T %v: answered %v", name, m, m, err)
			}
		}
		s.ExpectGranted(t, k)
	}
}
