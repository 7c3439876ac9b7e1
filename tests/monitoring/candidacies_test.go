package monitoring_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A candidacy is counted from its beginning to its end, with how it has ended. WithEnded reports each end that was not
// asked for: otherwise nothing in the process knows that it does not lead again.
func TestCandidacies_AreCountedAndTheirEndIsReported(t *testing.T) {
	t.Parallel()
	m := openMeasured(t, redistest.Start(t).URL(), lockkeeper.Config{})
	ended := make(chan error, 10)
	reported := lockkeeper.WithEnded(func(err error) { ended <- err })
	lock := func(name string) *lockkeeper.Lock { return m.FencedLock(t.Name() + name) }
	want := map[string]int64{}
	expect := func(result string, n int64, err error) {
		t.Helper()
		want["lockkeeper.candidacies.ended fenced "+result] = n
		want["lockkeeper.candidacies fenced"] = 0
		m.expect(t, want)
		if result == "resigned" {
			locktest.NotYet(t, ended, "a report of an end that was asked for")
		} else if got := locktest.Await(t, "the report", ended); !errors.Is(got, err) {
			t.Errorf("%s: it is reported with %v", result, got)
		}
	}
	until := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	errWork := errors.New("the work has failed")

	resign := lock("a").Lead(until, reported)
	standby := lock("a").Lead(until, reported)
	m.expect(t, map[string]int64{"lockkeeper.candidacies fenced": 2, "lockkeeper.standbys fenced": 1, "lockkeeper.holds fenced": 1})
	locktest.OK(t, resign(locktest.Within(t)))
	locktest.OK(t, standby(locktest.Within(t)))
	expect("resigned", 2, nil)

	resign = lock("b").Lead(func(context.Context) error { return nil }, reported)
	expect("done", 1, nil)
	locktest.OK(t, resign(locktest.Within(t)))

	if err := lock("c").Elect(locktest.Within(t), func(context.Context) error { return errWork }, reported); err != errWork {
		t.Error(err)
	}
	expect("failed", 1, errWork)

	_ = lock("d").Lead(until, reported, lockkeeper.WithLease(1))
	expect("invalid", 1, lockkeeper.ErrInvalid)

	func() {
		defer func() { _ = recover() }()
		_ = lock("e").Elect(locktest.Within(t), func(context.Context) error { panic("as planned") }, reported)
	}()
	redistest.Eventually(t, "the report of the panic", func() bool { return len(ended) == 1 })
	if err := <-ended; err == nil {
		t.Error("a panic is reported as an end of the work")
	}
	want["lockkeeper.candidacies.ended fenced crashed"] = 1

	stops := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, is := ctx.Message().(*actor.Started); is {
			ctx.Stop(ctx.Self())
		}
	})
	m.Actors.Root.Spawn(lock("f").LeaderProps(func(context.Context) *actor.Props { return stops }, reported))
	expect("done", 2, nil)

	stopping := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	m.Actors.Root.WithGuardian(stopping).Spawn(lock("i").LeaderProps(func(context.Context) *actor.Props { panic("as planned") }, reported))
	want["lockkeeper.candidacies.ended fenced crashed"] = 2
	m.expect(t, want)

	_ = lock("g").Lead(until, reported)
	m.expect(t, map[string]int64{"lockkeeper.candidacies fenced": 1, "lockkeeper.holds fenced": 1})
	locktest.Stop(t, m)
	expect("closed", 1, lockkeeper.ErrClosed)
}

// Instances of singletons are counted, and so are the messages that proxies refuse.
func TestMetrics_CountSingletons(t *testing.T) {
	t.Parallel()
	m := openMeasured(t, redistest.Start(t).URL(), lockkeeper.Config{})
	s := m.Singleton(t.Name())
	candidate := m.Actors.Root.Spawn(s.Props(func(context.Context) *actor.Props { return actor.PropsFromFunc(func(actor.Context) {}) }))
	m.expect(t, map[string]int64{"lockkeeper.singleton.instances": 1, "lockkeeper.candidacies fenced": 1, "lockkeeper.singleton.refused": 0})
	proxy := m.Actors.Root.Spawn(s.Proxy())
	m.Actors.Root.Send(proxy, "not a protobuf message")
	m.expect(t, map[string]int64{"lockkeeper.singleton.refused": 1})
	locktest.OK(t, m.Actors.Root.StopFuture(candidate).Wait())
	m.expect(t, map[string]int64{"lockkeeper.singleton.instances": 0, "lockkeeper.candidacies fenced": 0})
	locktest.OK(t, m.Actors.Root.StopFuture(proxy).Wait())
}
