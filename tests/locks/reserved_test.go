package locks_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A lock whose key belongs to another lock is refused: the scripts of that lock would change or delete the key while
// it is held. "{x}" would share the queue and the channels of "x", and receive its messages. All calls and messages
// of all kinds refuse both.
func TestNames_OfDerivedKeysAreReserved(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name := k.LockName
	for odd, word := range map[string]string{
		keyspace.WaitQueue(name): "the processes that wait for a lock", keyspace.Token(name): "the counter of a lock's fencing tokens",
		keyspace.Counted(name): "counted a latch down", keyspace.Taken(name): "permits of a semaphore", "{" + name + "}": "with \"" + name + "\"",
	} {
		refusesEveryKind(t, s, odd, word)
	}
	for _, fine := range []string{"{" + name + "}:lock", name + ":timeout", "lockkeeper:" + name, "redisson_lock_token:" + name} {
		locktest.ExpectGranted(t, s.Lock(fine))
		k.Do(t, "DEL", keyspace.Token(fine))
	}
}

// With a key prefix it is the whole key that counts.
func TestNames_WithPrefixAreReservedByTheWholeKey(t *testing.T) {
	t.Parallel()
	_, k := locktest.New(t, lockkeeper.Config{})
	app := locktest.Open(t, k.Server.URL(), lockkeeper.Config{KeyPrefix: k.Name + ":"})
	locktest.ExpectGranted(t, app.Lock("{a}"), app.Lock(keyspace.WaitQueue("a")))
	refusesName(t, app, keyspace.Taken("a"), "reserved")
	tag := locktest.Open(t, k.Server.URL(), lockkeeper.Config{KeyPrefix: "{" + k.Name})
	refusesName(t, tag, "}", "{"+k.Name+"}:name")
	locktest.ExpectGranted(t, tag.Lock("}:a"))
}

// The servers of a RedLock may have different key prefixes, and a name is checked with each of them.
func TestNames_AreReservedOnEveryServerOfARedLock(t *testing.T) {
	t.Parallel()
	var systems []*lockkeeper.System
	for _, prefix := range []string{"", "app:", "lockkeeper_wait_queue:"} {
		systems = append(systems, locktest.Open(t, redistest.Start(t).URL(), lockkeeper.Config{KeyPrefix: prefix, Watchdog: time.Second}).System)
	}
	red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
	for name, word := range map[string]string{"{a}:b": "the processes that wait for a lock", keyspace.Queue("a"): "the queue of a fair lock", "{a}": "with \"a\""} {
		for _, err := range locktest.Errors(locktest.Within(t), red.Lock(name)) {
			locktest.IsError(t, err, lockkeeper.ErrInvalid, word)
		}
	}
	locktest.ExpectGranted(t, red.Lock("a"))
}

// refusesEveryKind checks that a name is refused as invalid, by all calls and messages, and that the error contains
// word.
func refusesEveryKind(t *testing.T, s *locktest.Site, name, word string) {
	t.Helper()
	ctx, p := locktest.Within(t), s.Probe(t)
	errs := map[string]error{}
	for kind, of := range locktest.Kinds {
		if kind == "multi" {
			of = func(s *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock("other"), s.Lock(name))
			}
		} else {
			for _, request := range locktest.Requests(locktest.KindMessage(kind, name)) {
				locktest.ExpectRefusal(t, p, request, invalid, word)
			}
		}
		for call, err := range locktest.Errors(ctx, of(s, name)) {
			errs[kind+" "+call] = err
		}
	}
	_, errs["TrySetPermits"] = s.Semaphore(name).TrySetPermits(ctx, 1, 0)
	errs["Semaphore"] = s.Semaphore(name).Acquire(ctx, 1)
	_, errs["Permits"] = s.ExpirableSemaphore(name).Acquire(ctx)
	_, errs["TrySetCount"] = s.Latch(name).TrySetCount(ctx, 1)
	errs["Latch"] = s.Latch(name).Wait(ctx)
	for call, err := range errs {
		if locktest.IsError(t, err, lockkeeper.ErrInvalid, word) != invalid {
			t.Errorf("%s of %q: %v", call, name, err)
		}
	}
	semaphore, latch := &messages.Semaphore{Name: name}, &messages.Latch{Name: name}
	multi := &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: []*messages.Lock{{Name: name}}}
	for _, request := range []proto.Message{
		&messages.Acquire{Lock: multi}, &messages.Acquire{Lock: &messages.Lock{Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE, Name: name}},
		&messages.AcquirePermits{Semaphore: semaphore}, &messages.AddPermits{Semaphore: semaphore, Permits: 1},
		&messages.AwaitLatch{Latch: latch}, &messages.CountDown{Latch: latch},
	} {
		locktest.ExpectRefusal(t, p, request, invalid, word)
	}
}
