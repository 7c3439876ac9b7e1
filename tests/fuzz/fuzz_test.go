package fuzz_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

const decade = 10 * 365 * 24 * time.Hour

// Whatever a Config says, either New refuses it with the name of what is wrong, or its
// settings fit each other and locks work with it.
func FuzzConfig(f *testing.F) {
	const s, never = int64(time.Second), int64(math.MaxInt64)
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, "")
	f.Add(s, s/2, s/3, s, s, 3*s, s, 1, "app:")
	f.Add(s, s/2, s/3, s, s, 3*s-1, s, 1, "app:")
	f.Add(s/10, s/100, s/1000, s/100, s/100, 3*s/100, s/100, 10_000, "{tag}:")
	f.Add(s, s/2+1, s/3+1, s/100-1, s/100-1, 3*s-1, s/100-1, -1, "\xff")
	f.Add(s/10-1, -s, -s, -s, -s, -s, -s, math.MaxInt, strings.Repeat("x", 512))
	f.Add(int64(actors.MaxLease), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, strings.Repeat("x", 511))
	f.Add(int64(actors.MaxLease)+1, s, s/1000, s, s, s, s, 1, "")
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
		system := quietly(&journal{})
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
			"Watchdog":      c.Watchdog >= 100*time.Millisecond && c.Watchdog <= actors.MaxLease,
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

// refused expects an error that names what is wrong with a Config, and nothing else.
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
			// Of what was left open, only what is derived from something else can be wrong.
			if !given && (field != "Renewal is" && field != "HandOffLimit is" && field != "WaiterTimeout is" || c.Watchdog == 0 && c.Poll == 0) {
				t.Errorf("%+v: %s was left open, and is wrong: %v", c, field, err)
			}
		}
	}
	if named == 0 || !strings.Contains(err.Error(), "must ") {
		t.Errorf("%+v: the error does not say what is allowed: %v", c, err)
	}
}

// Any name and any times either are refused as invalid, or the lock is held under that
// name, for no longer than was said, and is gone after its release.
func FuzzLocks(f *testing.F) {
	for i, name := range []string{
		"", "orders", "a{b}c", "a{b", "ключ", "\xff", "half a rune \xd0", "\x00", "\r\n$3\r\nfoo", " ", "*", "mode", "{}",
		strings.Repeat("x", 508), strings.Repeat("x", 509),
	} {
		f.Add(name, uint8(i), uint8(0), int64(0), int64(0), int64(0))
	}
	const s, most = int64(time.Second), int64(actors.MaxLease)
	for _, times := range [][3]int64{
		{60 * s, s, 0}, {0, s, 60 * s}, {0, 0, 0}, {s, s, s}, {-1, -1, -1}, {s/100 - 1, 0, 0}, {most, 0, 0}, {most + 1, 0, 0}, {0, math.MaxInt64, most},
		{math.MinInt64, math.MinInt64, math.MinInt64}, {0, 0, math.MaxInt64},
	} {
		for given := range uint8(8) {
			f.Add("orders", given, given, times[0], times[1], times[2])
		}
	}
	server := redistest.Shared(f)
	client, err := lockkeeper.Connect(server.URL())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	locks, err := lockkeeper.New(quietly(&journal{}), client, lockkeeper.Config{KeyPrefix: "fuzz", Idle: 10 * time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := locks.Close(locktest.Within(f)); err != nil {
			f.Error(err)
		}
	})
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
		patience, waits := d(2, wait, lockkeeper.WithWait)
		limit, limited := d(4, maxHold, lockkeeper.WithMaxHold)
		bad := func(d time.Duration) bool { return d < actors.MinLease || d > actors.MaxLease }
		wrongName := name == "" || len("fuzz"+name) > actors.MaxNameLength || !utf8.ValidString(name)
		wrong := wrongName || leased && bad(fixed) || limited && bad(limit) || leased && limited || waits && patience < 0

		hold, err := lock.Acquire(locktest.Within(t), options...)
		if wrong {
			if !errors.Is(err, lockkeeper.ErrInvalid) {
				t.Errorf("%q, lease %v, wait %v, max hold %v of %03b: %v", name, fixed, patience, limit, given, err)
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
				return // in so short a time
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

// A server, or a proxy before it, that replies something else than the scripts do crashes
// no lock actor: every call is answered in time.
func FuzzServer(f *testing.F) {
	for i, reply := range []string{
		"", "_\r\n", "$-1\r\n", "+OK\r\n", "-ERR unknown command 'EVALSHA'\r\n", "-NOPERM no\r\n", "-BUSY later\r\n", "*0\r\n", ":0\r\n", ":1\r\n", ":-1\r\n", ":-2\r\n",
		"*2\r\n:9223372036854775807\r\n+x\r\n", "*2\r\n:-9223372036854775808\r\n+x\r\n", "*3\r\n:1\r\n:0\r\n+\r\n", "*4\r\n:1\r\n:5\r\n+5,9\r\n+2\r\n",
		"*4\r\n:0\r\n:1\r\n+\r\n+1\r\n", "*3\r\n:-1\r\n:0\r\n+\r\n", "*3\r\n:7\r\n:7\r\n:7\r\n", "*2\r\n:1\r\n:9223372036854775807\r\n", "*1\r\n-ERR inside\r\n",
		"*2\r\n*1\r\n:1\r\n+x\r\n", "%1\r\n+k\r\n:1\r\n", ",1.5\r\n", "#t\r\n", "*3\r\n:-3\r\n:20000\r\n+\r\n", "*3\r\n_\r\n_\r\n_\r\n",
	} {
		f.Add([]byte(reply), uint8(i)) // all kinds with all of them would take a while
	}
	s := redistest.NewImpostor(f)
	client, err := lockkeeper.Connect(s.URL())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, reply []byte, kind uint8) {
		if !oneFrame(string(reply)) {
			return // rueidis gives up the process over replies to nothing
		}
		s.Answer(string(reply), 0)
		var log journal
		locks, err := lockkeeper.New(quietly(&log), client, lockkeeper.Config{Watchdog: time.Second, CallTimeout: 50 * time.Millisecond, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		rw := locks.ReadWriteLock("f")
		lock := []*lockkeeper.Lock{
			locks.Lock("f"), locks.FencedLock("f"), locks.FairLock("f"), rw.Read(), rw.Write(),
			lockkeeper.MultiLock(locks.FencedLock("f"), locks.Lock("g")), lockkeeper.MultiLock(locks.FairLock("f")),
		}[kind%7]
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		locktest.InTime(t, "all of it", func() {
			hold, err := lock.Acquire(ctx, lockkeeper.WithWait(20*time.Millisecond))
			check := func(what string, err error) {
				if errors.Is(err, lockkeeper.ErrCrashed) || err != nil && (strings.TrimSpace(err.Error()) == "" || strings.Contains(err.Error(), "%!")) {
					t.Errorf("%q: %s: %v", reply, what, err)
				}
			}
			check("acquire", err)
			_, err = lock.Inspect(ctx)
			check("inspect", err)
			if hold != nil {
				check("release", hold.Release(ctx))
			}
			_, err = lock.ForceRelease(ctx)
			check("force", err)
			check("close", locks.Close(ctx)) // what Redis has not confirmed is left to expire
			check("close again", locks.Close(locktest.Within(t)))
		})
		if text := log.String(); strings.Contains(text, "panic") {
			t.Errorf("%q: %s", reply, text)
		}
	})
}

// quietly is an actor system that logs to a journal.
func quietly(to *journal) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(to, nil))
	}))
}

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// oneFrame reports whether the text is one reply, and whole.
func oneFrame(text string) bool {
	rest, ok := frame(text, 0)
	return ok && rest == ""
}

func frame(text string, depth int) (rest string, ok bool) {
	line, rest, ok := strings.Cut(text, "\r\n")
	if !ok || line == "" || depth > 4 || strings.ContainsAny(line, "\r\n") {
		return "", false
	}
	n, err := strconv.ParseInt(line[1:], 10, 64)
	switch line[0] {
	case ':':
		return rest, err == nil && strconv.FormatInt(n, 10) == line[1:]
	case '_':
		return rest, line == "_"
	case '#':
		return rest, line == "#t" || line == "#f"
	case ',':
		_, err := strconv.ParseFloat(line[1:], 64)
		return rest, err == nil
	case '+':
		return rest, true
	case '-': // not sent elsewhere
		return rest, len(line) > 1 && !strings.Contains(line, "MOVED") && !strings.Contains(line, "ASK") && !strings.Contains(line, "REDIRECT")
	case '$':
		if line == "$-1" {
			return rest, true
		}
		if err != nil || n < 0 || n > int64(len(rest)-2) || rest[n:n+2] != "\r\n" || line[1:] != strconv.FormatInt(n, 10) {
			return "", false
		}
		return rest[n+2:], true
	case '*', '%', '~':
		if err != nil || n < 0 || n > 16 || line[1:] != strconv.FormatInt(n, 10) {
			return "", false
		}
		if line[0] == '%' {
			n *= 2
		}
		for ok = true; ok && n > 0; n-- {
			rest, ok = frame(rest, depth+1)
		}
		return rest, ok
	}
	return "", false
}
