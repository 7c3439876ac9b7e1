package lockkeepertest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/lockkeepertest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func acquire(t *testing.T, lock *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	hold, err := lock.Acquire(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// await receives from c, and fails the test after 30 s.
func await[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came within 30 s")
	}
}

// Two Systems on one Redis exclude each other, and pass locks to each other; every kind works on
// the embedded Redis.
func TestSystems_ExcludeEachOther(t *testing.T) {
	redis := lockkeepertest.Start(t)
	here, there := redis.Open(t, lockkeeper.Config{}), redis.Open(t, lockkeeper.Config{})
	all := map[string]func(*lockkeeper.System, string) *lockkeeper.Lock{
		"multi": func(s *lockkeeper.System, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.FencedLock(name), s.FencedLock(name+" too"))
		},
	}
	for word, form := range kinds.Forms {
		if form.Mode == messages.Mode_MODE_EXCLUSIVE {
			all[word] = func(s *lockkeeper.System, name string) *lockkeeper.Lock { return s.LockOf(form.Of(name)) }
		}
	}
	for kind, of := range all {
		hold := acquire(t, of(here, kind))
		if _, err := of(there, kind).TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrHeld) {
			t.Errorf("%s: the other process is refused with %v", kind, err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(kind, err)
		}
		if err := acquire(t, of(there, kind)).Release(t.Context()); err != nil {
			t.Error(kind, err)
		}
	}
}

// Lose waits for a holder, which has been notified when Lose returns.
func TestLose_WaitsForTheHolder(t *testing.T) {
	locks := lockkeepertest.Open(t, lockkeeper.Config{})
	began := make(chan *lockkeeper.Hold, 1)
	go func() {
		hold, _ := locks.FencedLock("orders").Acquire(t.Context())
		began <- hold
	}()
	lockkeepertest.Lose(t, locks.FencedLock("orders"))
	if hold := <-began; hold == nil || !errors.Is(hold.Err(), lockkeeper.ErrLost) {
		t.Errorf("%v is still valid", hold)
	}
}

// When Redis fails, a holder is warned, and then loses the lock; after that Redis may recover.
func TestFail_WarnsBeforeTheLoss(t *testing.T) {
	redis := lockkeepertest.Start(t)
	locks := redis.Open(t, lockkeeper.Config{Watchdog: 300 * time.Millisecond})
	warned := make(chan time.Duration, 8)
	hold := acquire(t, locks.Lock("orders"), lockkeeper.WithAtRisk(func(left time.Duration) { warned <- left }))
	redis.Fail()
	await(t, warned)
	await(t, hold.Context().Done())
	if cause := context.Cause(hold.Context()); !errors.Is(cause, lockkeeper.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
	if _, err := locks.Lock("invoices").TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("a Redis that fails grants a lock: %v", err)
	}
	redis.Recover()
	acquire(t, locks.Lock("orders"), lockkeeper.WithLease(time.Hour))
	redis.Fail() // the System is closed all the same
}

// Advance ends the leases that are over, and no others, in all Systems.
func TestAdvance_EndsOnlyLeasesThatAreOver(t *testing.T) {
	redis := lockkeepertest.Start(t)
	here, there := redis.Open(t, lockkeeper.Config{Watchdog: 3 * time.Hour}), redis.Open(t, lockkeeper.Config{})
	kept, ended := acquire(t, here.Lock("kept")), acquire(t, there.Lock("ended"), lockkeeper.WithLease(time.Hour))
	ctx := ended.Context()
	redis.Advance(2 * time.Hour)
	await(t, ctx.Done())
	if ended.Valid() || !kept.Valid() {
		t.Errorf("of a lease of 1 h and one of 3 h, after 2 h: %v, %v", ended.Valid(), kept.Valid())
	}
	if _, err := here.Lock("ended").TryAcquire(t.Context()); err != nil {
		t.Errorf("the key of a lease that is over: %v", err)
	}
	if _, err := there.Lock("kept").TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrHeld) {
		t.Errorf("the key of a lease that goes on: %v", err)
	}
}

// failing is a test that records how it fails.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Fatal(args ...any)                 { f.text = fmt.Sprint(args...); runtime.Goexit() }
func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// Nil and zero arguments fail the test, and do not panic.
func TestNilArguments_FailTheTest(t *testing.T) {
	r := lockkeepertest.Start(t)
	for what, call := range map[string]func(t testing.TB){
		"the lock is nil":         func(t testing.TB) { lockkeepertest.Lose(t, nil) },
		"the actor system is nil": func(t testing.TB) { r.OpenIn(t, nil, lockkeeper.Config{}) },
		"there is no Redis: ":     func(t testing.TB) { new(lockkeepertest.Redis).Open(t, lockkeeper.Config{}) },
		"no Redis: use that":      func(t testing.TB) { (*lockkeepertest.Redis)(nil).Open(t, lockkeeper.Config{}) },
	} {
		f, ended := &failing{TB: t}, make(chan bool)
		go func() {
			defer close(ended)
			call(f)
		}()
		if <-ended; !strings.Contains(f.text, what) {
			t.Errorf("the test failed with %q, want %q", f.text, what)
		}
	}
	for _, none := range []*lockkeepertest.Redis{nil, {}} {
		none.Fail()
		none.Forget()
		none.Recover()
		none.Advance(time.Second)
		if url := none.URL(); url != "" {
			t.Errorf("no Redis has the URL %q", url)
		}
	}
}

// Forget erases all data: a holder is notified, and a semaphore has no number of permits.
func TestForget_ErasesAllData(t *testing.T) {
	redis := lockkeepertest.Start(t)
	locks := redis.Open(t, lockkeeper.Config{Watchdog: 300 * time.Millisecond})
	hold := acquire(t, locks.Lock("orders"))
	permits := locks.ExpirableSemaphore("licences").WithTotal(1)
	if _, err := locks.Semaphore("tickets").TrySetPermits(t.Context(), 3, 0); err != nil {
		t.Fatal(err)
	}
	if err := locks.Semaphore("tickets").Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	redis.Forget()
	await(t, hold.Context().Done())
	if err := hold.Err(); !errors.Is(err, lockkeeper.ErrLost) {
		t.Errorf("the hold ends with %v", err)
	}
	if err := locks.Semaphore("tickets").Acquire(t.Context(), 1); !errors.Is(err, lockkeeper.ErrNoPermits) {
		t.Errorf("a semaphore that was erased: %v", err)
	}
	permit, err := permits.Acquire(t.Context()) // sets the number
	if err != nil {
		t.Fatal(err)
	}
	if err := permit.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The clock stands still while a script runs, as in a real Redis, and goes on between commands.
func TestScripts_SeeOneMoment(t *testing.T) {
	options, err := rueidis.ParseURL(lockkeepertest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	options.DisableCache = true
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const script = `redis.call('SET', KEYS[1], '', 'PX', 5)
		local began = redis.call('TIME')
		for i = 1, 20000 do redis.call('EXISTS', KEYS[1]) end
		local now = redis.call('TIME')
		return {redis.call('PTTL', KEYS[1]), now[1] - began[1], now[2] - began[2]}`
	seen, err := client.Do(t.Context(), client.B().Eval().Script(script).Numkeys(1).Key("key").Build()).AsIntSlice()
	if err != nil || !slices.Equal(seen, []int64{5, 0, 0}) {
		t.Errorf("after 20,000 commands of one script a TTL of 5 ms and the time passed: %v, %v", seen, err)
	}
	for began := time.Now(); ; {
		left, err := client.Do(t.Context(), client.B().Pttl().Key("key").Build()).AsInt64()
		if err != nil || time.Since(began) > 30*time.Second {
			t.Fatal("the key did not expire: ", left, err)
		}
		if left == -2 {
			return
		}
	}
}
