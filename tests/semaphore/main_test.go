// Package semaphore_test tests semaphores and latches, by call and by message.
package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// api is a way to use a semaphore: by call, or by message.
type api interface {
	Acquire(ctx context.Context, n int, options ...lockkeeper.WaitOption) error
	TryAcquire(ctx context.Context, n int) error
	Release(ctx context.Context, n int) error
	ReleaseIfExists(ctx context.Context, n int) (bool, error)
	TrySetPermits(ctx context.Context, n int, ttl time.Duration) (bool, error)
	AddPermits(ctx context.Context, n int) error
	Drain(ctx context.Context) (int, error)
	Available(ctx context.Context) (int, error)
}

// eachAPI runs a test by call and by message.
func eachAPI(t *testing.T, test func(t *testing.T, s *locktest.Site, k locktest.Key, f api)) {
	t.Helper()
	for name, make := range map[string]func(s *locktest.Site, k locktest.Key) api{
		"goroutine": func(s *locktest.Site, k locktest.Key) api { return s.Semaphore(k.LockName) },
		"message": func(s *locktest.Site, k locktest.Key) api {
			return &byMessage{s, &messages.Semaphore{Name: k.LockName}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			test(t, s, k, make(s, k))
		})
	}
}

// byMessage sends messages from futures.
type byMessage struct {
	*locktest.Site
	semaphore *messages.Semaphore
}

func (f *byMessage) ask(m any) (done bool, n int, err error) {
	result, err := f.Actors.Root.RequestFuture(f.Guardian(), m, redistest.Limit).Result()
	switch m := result.(type) {
	case *messages.PermitsAcquired:
		return true, int(m.Permits), err
	case *messages.PermitsReleased:
		return m.Released, 0, err
	case *messages.PermitsChanged:
		return m.Done, int(m.Permits), err
	case *messages.PermitsRefused:
		return false, 0, &lockkeeper.Error{Reason: m.Reason, Detail: m.Detail, Err: map[messages.Reason]error{
			messages.Reason_REASON_HELD: lockkeeper.ErrHeld, messages.Reason_REASON_TIMED_OUT: lockkeeper.ErrTimeout, messages.Reason_REASON_NO_PERMITS: lockkeeper.ErrNoPermits,
			messages.Reason_REASON_INVALID: lockkeeper.ErrInvalid, messages.Reason_REASON_REJECTED: lockkeeper.ErrRejected,
		}[m.Reason]}
	}
	return false, 0, errors.Join(err, fmt.Errorf("the answer is %T", result))
}

func (f *byMessage) Acquire(_ context.Context, n int, options ...lockkeeper.WaitOption) error {
	m := &messages.AcquirePermits{Semaphore: f.semaphore, Permits: int32(n)}
	if len(options) > 0 {
		m.Wait = durationpb.New(time.Second)
	}
	_, got, err := f.ask(m)
	if err == nil && got != n {
		err = fmt.Errorf("got %d permits", got)
	}
	return err
}

func (f *byMessage) TryAcquire(context.Context, int) error {
	_, _, err := f.ask(&messages.AcquirePermits{Semaphore: f.semaphore, Wait: durationpb.New(0)})
	return err
}

func (f *byMessage) Release(_ context.Context, n int) error {
	_, _, err := f.ask(&messages.ReleasePermits{Semaphore: f.semaphore, Permits: int32(n)})
	return err
}

func (f *byMessage) ReleaseIfExists(_ context.Context, n int) (bool, error) {
	done, _, err := f.ask(&messages.ReleasePermits{Semaphore: f.semaphore, Permits: int32(n), IfExists: true})
	return done, err
}

func (f *byMessage) TrySetPermits(_ context.Context, n int, ttl time.Duration) (bool, error) {
	m := &messages.TrySetPermits{Semaphore: f.semaphore, Permits: int32(n)}
	if ttl != 0 {
		m.Ttl = durationpb.New(ttl)
	}
	done, _, err := f.ask(m)
	return done, err
}

func (f *byMessage) AddPermits(_ context.Context, n int) error {
	_, _, err := f.ask(&messages.AddPermits{Semaphore: f.semaphore, Permits: int32(n)})
	return err
}

func (f *byMessage) Drain(context.Context) (int, error) {
	_, n, err := f.ask(&messages.DrainPermits{Semaphore: f.semaphore})
	return n, err
}

func (f *byMessage) Available(context.Context) (int, error) {
	_, n, err := f.ask(&messages.InspectPermits{Semaphore: f.semaphore})
	return n, err
}

// expectFree checks how many permits are free.
func expectFree(t *testing.T, f api, want int) {
	t.Helper()
	if n, err := f.Available(locktest.Within(t)); n != want || err != nil {
		t.Errorf("%d are free, %v; want %d", n, err, want)
	}
}

// acquireSoon acquires on a goroutine.
func acquireSoon(t *testing.T, f api, n int, options ...lockkeeper.WaitOption) <-chan error {
	t.Helper()
	ctx := locktest.Within(t)
	return locktest.Go(func() error { return f.Acquire(ctx, n, options...) })
}

// awaitListeners waits until so many processes have subscribed to the semaphore's channel: their requests wait.
func awaitListeners(t *testing.T, k locktest.Key, processes int64) {
	t.Helper()
	redistest.Eventually(t, "a subscription", func() bool { return k.Server.Subscribers(t, "redisson_sc:{"+k.LockName+"}") >= processes })
}
