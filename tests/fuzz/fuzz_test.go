// Package fuzz_test gives a System any configuration, and its locks any name and times.
package fuzz_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

const decade = 10 * 365 * 24 * time.Hour

// New refuses a Config with the name of the invalid setting, or its settings are consistent and locks work with it.
func FuzzConfig(f *testing.F) {
	const s, never = int64(time.Second), int64(math.MaxInt64)
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, "")
	f.Add(s, s/2, s/3, s, s, 3*s, s, 1, "app:")
	f.Add(s, s/2, s/3, s, s, 3*s-1, s, 1, "app:")
	f.Add(s/10, s/100, s/1000, s/100, s/100, 3*s/100, s/100, 10_000, "{tag}:")
	f.Add(s, s/2+1, s/3+1, s/100-1, s/100-1, 3*s-1, s/100-1, -1, "\xff")
	f.Add(s/10-1, -s, -s, -s, -s, -s, -s, math.MaxInt, strings.Repeat("x", 512))
	f.Add(int64(request.MaxLease), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, strings.Repeat("x", 511))
	f.Add(int64(request.MaxLease)+1, s, s/1000, s, s, s, s, 1, "")
	f.Add(never, never, never, never, never, never, never, math.MaxInt, "{")
	f.Add(int64(0), int64(0), int64(0), never/2+1, int64(0), int64(0), int64(0), 0, "")
	server := redistest.Shared(f)
	client, err := lockkeeper.Connect(server.URL())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, watchdog, renewal, handOffLimit, poll, callTimeout, waiterTimeout, idle int64, queueLimit int, prefix string) {
		d := func(n int64) time.Duration { return time.Duration(n) }
		c := lockkeeper.Config{
			Watchdog: d(watchdog), Renewal: d(renewal), HandOffLimit: d(handOffLimit), Poll: d(poll), CallTimeout: d(callTimeout),
			WaiterTimeout: d(waiterTimeout), Idle: d(idle), QueueLimit: queueLimit, KeyPrefix: prefix,
		}
		system := quiet.ActorSystem()
		locks, err := lockkeeper.New(system, client, c)
		if err != nil {
			refused(t, c, err)
			return
		}
		defer func() {
			if err := locks.Close(locktest.Within(t)); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		or := func(value, byDefault time.Duration) time.Duration {
			if value == 0 {
				return byDefault
			}
			return value
		}
		c.Watchdog = or(c.Watchdog, 30*time.Second)
		c.Poll = or(c.Poll, time.Second)
		c.WaiterTimeout = or(c.WaiterTimeout, max(5*time.Second, 3*c.Poll))
		for what, ok := range map[string]bool{
			"Watchdog":      c.Watchdog >= 100*time.Millisecond && c.Watchdog <= request.MaxLease,
			"Renewal":       c.Renewal >= 0 && c.Renewal <= c.Watchdog/2,
			"HandOffLimit":  c.HandOffLimit >= 0 && c.HandOffLimit <= c.Watchdog/3,
			"Poll":          c.Poll >= 10*time.Millisecond && c.Poll <= decade,
			"CallTimeout":   c.CallTimeout == 0 || c.CallTimeout >= 10*time.Millisecond && c.CallTimeout <= decade,
			"WaiterTimeout": c.WaiterTimeout/3 >= c.Poll && c.WaiterTimeout <= 3*decade,
			"Idle":          c.Idle == 0 || c.Idle >= 10*time.Millisecond && c.Idle <= decade,
			"QueueLimit":    c.QueueLimit >= 0,
			"KeyPrefix":     utf8.ValidString(prefix) && len(prefix) < 512,
		} {
			if !ok {
				t.Errorf("%s was accepted in %+v", what, c)
			}
		}
		if or(c.CallTimeout, 2*time.Second) < 2*time.Second || c.Watchdog < 10*time.Second {
			return // a busy machine may need more
		}
		for _, lock := range []*lockkeeper.Lock{
			locks.Lock("f"), locks.FencedLock("f"), locks.FairLock("f"), locks.ReadWriteLock("f").Write(), locks.ReadWriteLock("f").Read(),
		} {
			server.Do(t, "DEL", prefix+"f")
			hold, err := lock.Acquire(locktest.Within(t))
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if _, err := lock.Inspect(locktest.Within(t)); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if err := hold.Release(locktest.Within(t)); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if held, err := lock.ForceRelease(locktest.Within(t)); err != nil || held {
				t.Errorf("%+v: force release: held %v, %v", c, held, err)
			}
		}
	})
}

// refused expects an error that names the invalid settings of a Config, and no others.
func refused(t *testing.T, c lockkeeper.Config, err error) {
	t.Helper()
	if !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("%+v: %v", c, err)
	}
	named := 0
	for field, given := range map[string]bool{
		"Watchdog is": c.Watchdog != 0, "Renewal is": c.Renewal != 0, "HandOffLimit is": c.HandOffLimit != 0, "Poll is": c.Poll != 0,
		"CallTimeout is": c.CallTimeout != 0, "WaiterTimeout is": c.WaiterTimeout != 0, "Idle is": c.Idle != 0,
		"QueueLimit is": c.QueueLimit != 0, "KeyPrefix ": c.KeyPrefix != "",
	} {
		if strings.Contains(err.Error(), field) {
			named++
			// A setting that was left open can be invalid only if it is derived from another setting.
			if !given && (field != "Renewal is" && field != "HandOffLimit is" && field != "WaiterTimeout is" || c.Watchdog == 0 && c.Poll == 0) {
				t.Errorf("%+v: %s was left open, and is wrong: %v", c, field, err)
			}
		}
	}
	if named == 0 || !strings.Contains(err.Error(), "must ") {
		t.Errorf("%+v: the error does not say what is allowed: %v", c, err)
	}
}

// A name and times are refused as invalid, or the lock is held under that name for no longer than requested, and is
// free after its release.
func FuzzLocks(f *testing.F) {
	for i, name := range []string{
		"", "orders", "a{b}c", "a{b", "ключ", "\xff", "half a rune \xd0", "\x00", "\r\n$3\r\nfoo", " ", "*", "mode", "{}",
		strings.Repeat("x", 508), strings.Repeat("x", 509),
	} {
		f.Add(name, uint8(i), uint8(0), int64(0), int64(0), int64(0))
	}
	const s, most = int64(time.Second), int64(request.MaxLease)
	for _, times := range [][3]int64{
		{60 * s, s, 0}, {0, s, 60 * s}, {0, 0, 0}, {s, s, s}, {-1, -1, -1}, {s/100 - 1, 0, 0}, {most, 0, 0}, {most + 1, 0, 0}, {0, math.MaxInt64, most},
		{math.MinInt64, math.MinInt64, math.MinInt64}, {0, 0, math.MaxInt64},
	} {
		for given := range uint8(8) {
			f.Add("orders", given, given, times[0], times[1], times[2])
		}
	}
	server := redistest.Shared(f)
	locks := locktest.Open(f, server.URL(), lockkeeper.Config{KeyPrefix: "fuzz", Idle: 10 * time.Millisecond})
	f.Fuzz(func(t *testing.T, name string, kind, given uint8, lease, wait, maxHold int64) {
		rw := locks.ReadWriteLock(name)
		lock := []*lockkeeper.Lock{locks.Lock(name), locks.FencedLock(name), locks.FairLock(name), rw.Read(), rw.Write(), lockkeeper.MultiLock(locks.Lock(name))}[kind%6]
		var options []lockkeeper.Option
		d := func(bit uint8, n int64, option func(time.Duration) lockkeeper.Option) (time.Duration, bool) {
			if given&bit == 0 {
				return 0, false
			}
			options = append(options, option(time.Duration(n)))
			return time.Duration(n), true
		}
		fixed, leased := d(1, lease, lockkeeper.WithLease)
		timeout, waits := d(2, wait, func(d time.Duration) lockkeeper.Option { return lockkeeper.WithWait(d) })
		limit, limited := d(4, maxHold, lockkeeper.WithMaxHold)
		bad := func(d time.Duration) bool { return d < request.MinLease || d > request.MaxLease }
		wrongName := name == "" || len("fuzz"+name) > request.MaxNameLength || !utf8.ValidString(name)
		wrong := wrongName || leased && bad(fixed) || limited && bad(limit) || leased && limited || waits && timeout < 0

		hold, err := lock.Acquire(locktest.Within(t), options...)
		if wrong {
			if !errors.Is(err, lockkeeper.ErrInvalid) {
				t.Errorf("%q, lease %v, wait %v, max hold %v of %03b: %v", name, fixed, timeout, limit, given, err)
			}
			if _, err := lock.Inspect(locktest.Within(t)); wrongName != errors.Is(err, lockkeeper.ErrInvalid) {
				t.Errorf("inspect %q: %v", name, err)
			}
			if err == nil {
				t.Fatal("invalid, and held")
			}
			return
		}
		if err != nil {
			if waits && errors.Is(err, lockkeeper.ErrTimeout) || errors.Is(err, lockkeeper.ErrHeld) {
				return // the wait was too short
			}
			t.Fatalf("%q: %v", name, err)
		}
		ttl, err := server.Do(t, "PTTL", "fuzz"+name).AsInt64()
		if most := max(30*time.Second, fixed); err != nil || ttl > most.Milliseconds()+1 || ttl < 0 && max(fixed, limit) > time.Minute {
			t.Errorf("%q is held for %d ms, %v", name, ttl, err)
		}
		if err := hold.Release(locktest.Within(t)); err != nil && !errors.Is(err, lockkeeper.ErrLost) {
			t.Errorf("release %q: %v", name, err)
		}
		if left, err := server.Do(t, "EXISTS", "fuzz"+name).AsInt64(); err != nil || left != 0 {
			t.Errorf("%q is left, %v", name, err)
		}
	})
}
