package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// otherTypes are keys of other applications, one of each type of Redis.
var otherTypes = map[string][]string{
	"string": {"SET", "KEY", "tiger"},
	"list":   {"RPUSH", "KEY", "tiger"},
	"hash":   {"HSET", "KEY", "email", "tiger"},
	"set":    {"SADD", "KEY", "tiger"},
	"zset":   {"ZADD", "KEY", "100", "ann", "200", "tiger"},
}

// foreignKey writes another application's key, and returns what checks that it stays as it is.
func foreignKey(t *testing.T, k locktest.Key, key string, write ...string) (unchanged func(what string)) {
	t.Helper()
	write = slices.Clone(write)
	write[1] = key
	k.Do(t, write...)
	state := func() string {
		text, err := k.Do(t, "DUMP", key).ToString()
		return fmt.Sprintf("%x %v, with an end: %v", text, err, k.Number(t, "PTTL", key) >= 0)
	}
	before := state()
	return func(what string) {
		t.Helper()
		if after := state(); after != before {
			t.Errorf("%s: the key %s has become %s, was %s", what, key, after, before)
		}
	}
}

// The ids that a latch has counted may be a key of another application. Who looks at the latch, or counts it down
// without an id, does not need it.
func TestForeignKeyBesideALatch(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for kind, write := range otherTypes {
		k := locktest.NewKey(t, redistest.Shared(t))
		unchanged := foreignKey(t, k, redisio.Counted(k.Name), write...)
		latch, ctx := s.Latch(k.LockName), locktest.Within(t)
		_, count := latch.Count(ctx)
		unchanged(kind + ": Count")
		wait := latch.Wait(ctx)
		unchanged(kind + ": Wait")
		_, set := latch.TrySetCount(ctx, 2)
		down := latch.CountDown(ctx)
		unchanged(kind + ": CountDown")
		locktest.IsError(t, latch.CountDownOnce(ctx, "id"), lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(kind + ": CountDownOnce")
		opens := latch.CountDown(ctx)
		unchanged(kind + ": CountDown that opens")
		if err := errors.Join(count, wait, set, down, opens); err != nil || k.Exists(t) {
			t.Errorf("%s: %v, and the latch is open: %v", kind, err, !k.Exists(t))
		}
	}
}

// The permits that are taken may be a sorted set of another application, whatever its members and scores are.
func TestForeignKeyBesidePermits(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for _, members := range [][]string{
		{"1e15", "0123456789abcdef", "2e15", "ann"},
		{"-5", "ann", "1e15", "0123456789abcdef"},
		{"1e15", ""},
		{"1e14", "0123456789abcdef", "1e15", ""},
		{"1", "0123456789abcdef", "2", "0123456789abcdeg", "3e15", "bert"},
	} {
		k := locktest.NewKey(t, redistest.Shared(t))
		k.Do(t, "SET", k.Name, "3")
		unchanged := foreignKey(t, k, redisio.Taken(k.Name), append([]string{"ZADD", "KEY"}, members...)...)
		p, ctx := s.ExpirableSemaphore(k.LockName), locktest.Within(t)
		_, err := p.TryAcquire(ctx)
		locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(fmt.Sprint(members, ": TryAcquire"))
		locktest.IsError(t, p.SetPermits(ctx, 9), lockkeeper.ErrRejected, "WRONGTYPE")
		_, err = p.Available(ctx)
		locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(fmt.Sprint(members))
	}
}

// The time at which a number of permits is set again is ours only if it is a time within the TTL of its key. Anything
// else is refused at once, and neither waited for nor taken for a time that has passed.
func TestForeignKeyOfARestore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: 300 * time.Millisecond, Poll: 100 * time.Millisecond})
	writes := map[string][]string{}
	for kind, write := range otherTypes {
		writes[kind] = write
	}
	for _, value := range []string{"99999999999999999", "9007199254740991", "9223372036854775807", "7", "-7", "0", ""} {
		writes["number "+value] = []string{"SET", "KEY", value}
	}
	writes["number beyond its end"] = []string{"SET", "KEY", "9007199254740991", "PX", "100000"}
	for kind, write := range writes {
		k := locktest.NewKey(t, server)
		key := redisio.Calls(k.Name) + ":restore"
		unchanged := foreignKey(t, k, key, write...)
		_, err := s.ExpirableSemaphore(k.LockName, lockkeeper.WithPermits(3)).Acquire(locktest.Within(t))
		if !errors.Is(err, lockkeeper.ErrRejected) || strings.Contains(err.Error(), "tiger") {
			t.Errorf("%s: %v", kind, err)
		}
		unchanged(kind)
		if k.Exists(t) {
			t.Errorf("%s: the number is set", kind)
		}
	}
}

// The memory of a RedLock's server may be a key of another application.
func TestForeignKeyOfAMemory(t *testing.T) {
	t.Parallel()
	for kind, write := range otherTypes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var systems []*lockkeeper.System
			var checks []func(string)
			for range 3 {
				k := locktest.NewKey(t, redistest.Start(t))
				checks = append(checks, foreignKey(t, k, redisio.Memory(""), write...))
				systems = append(systems, locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: time.Second}).System)
			}
			red, err := lockkeeper.NewRedLock(systems...)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			_, err = red.Lock("x").Acquire(ctx)
			locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
			for _, unchanged := range checks {
				unchanged("Acquire")
			}
		})
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// The list of all Systems may be a key of another application. The log says so once, and everything else works.
func TestForeignKeyOfTheSystems(t *testing.T) {
	t.Parallel()
	for kind, write := range otherTypes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := locktest.NewKey(t, redistest.Start(t))
			unchanged := foreignKey(t, k, redisio.Systems(""), write...)
			log := make(lines, 1000)
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Application: "shop", Watchdog: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
			const warning = "Redis refuses the record of this system"
			says := func(line string) bool { return strings.Contains(line, warning) } // a busy machine may have more to say
			line := ""
			for !says(line) {
				line = locktest.Await(t, "a line in the log", log)
			}
			if !strings.Contains(line, "WRONGTYPE") {
				t.Error(line)
			}
			locktest.ExpectGranted(t, s.Lock("x"))
			server := k.Server
			server.ResetStats(t)
			redistest.Eventually(t, "two more tries", func() bool { return server.Calls(t)["evalsha"]+server.Calls(t)["eval"] >= 2 })
			if err := s.Close(locktest.Within(t)); err != nil {
				t.Error(err)
			}
			unchanged("Close")
			for len(log) > 0 {
				if line := <-log; says(line) {
					t.Errorf("the log says again %s", line)
				}
			}
		})
	}
}

// Only an integer of Redis's, and digits that may be one, are a number. What looks like one to people is a value of
// another application: it is not told, and no number replaces it.
func TestForeignValueLikeANumber(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for value, number := range map[string]bool{
		"2026-11-25": false, "+49 30 123456": false, "4111 1111 1111 1111": false, "1.5": false, "1e3": false, "-": false,
		"123456789012345678901": false, "007": true, "9007199254740993": true, "-9223372036854775808": true,
	} {
		k := locktest.NewKey(t, redistest.Shared(t))
		k.Do(t, "SET", k.Name, value)
		p, ctx := s.ExpirableSemaphore(k.LockName), locktest.Within(t)
		_, acquire := p.TryAcquire(ctx)
		_, count := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}).Latch(k.LockName).Count(ctx)
		for call, err := range map[string]error{"TryAcquire": acquire, "Count of a latch": count} {
			locktest.IsError(t, err, lockkeeper.ErrRejected)
			if told := strings.Contains(err.Error(), `"`+value+`"`); told != number {
				t.Errorf("%s of %q: %v", call, value, err)
			}
		}
		err := p.SetPermits(ctx, 3)
		got, _ := k.Do(t, "GET", k.Name).ToString()
		if number && (err != nil || got != "3") || !number && (!errors.Is(err, lockkeeper.ErrRejected) || got != value) {
			t.Errorf("SetPermits in place of %q: %v, and it is %q", value, err, got)
		}
	}
}
