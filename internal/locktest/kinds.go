package locktest

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Kind makes a lock of a kind.
type Kind = func(s *Site, name string) *lockkeeper.Lock

// Kinds are those that a single System has.
var Kinds = func() map[string]Kind {
	all := map[string]Kind{"multi": func(s *Site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.FairLock(name+" too"), s.ReadWriteLock(name+" read").Read())
	}}
	for word, form := range kinds.Forms {
		all[word] = func(s *Site, name string) *lockkeeper.Lock { return s.LockOf(form.Of(name)) }
	}
	return all
}()

// EachKind runs a parallel subtest for each of Kinds.
func EachKind(t *testing.T, test func(t *testing.T, kind string, of Kind)) {
	t.Helper()
	for kind, of := range Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind, of)
		})
	}
}

// WaitQueue is the key of the wait queue of a kind.
func WaitQueue(kind, key string) string {
	if kind == "read" || kind == "write" {
		return keyspace.ReadWriteQueue(key)
	}
	return keyspace.WaitQueue(key)
}

// KindMessage is the message for a lock of a kind; a MultiLock has none.
func KindMessage(kind, name string) *messages.Lock { return kinds.Forms[kind].Of(name) }

// Errors makes every call on a lock, and returns their errors.
func Errors(ctx context.Context, l *lockkeeper.Lock) map[string]error {
	_, acquire := l.Acquire(ctx)
	_, try := l.TryAcquire(ctx)
	_, inspect := l.Inspect(ctx)
	_, force := l.ForceRelease(ctx)
	return map[string]error{"Acquire": acquire, "TryAcquire": try, "Inspect": inspect, "ForceRelease": force}
}
