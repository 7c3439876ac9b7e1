package locktest

import (
	"context"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Kind makes a lock of a kind.
type Kind = func(s *Site, name string) *lockkeeper.Lock

// Kinds are the kinds of a single System.
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

// Fits reports whether a test applies to a kind.
type Fits = func(form kinds.Form, row *kinds.Row) bool

// Words returns the words of the kinds with one key that fit all of these, in the order of the alphabet.
func Words(all ...Fits) (words []string) {
	for word, form := range kinds.Forms {
		if !slices.ContainsFunc(all, func(fits Fits) bool { return !fits(form, kinds.Of(form.Kind)) }) {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// Exclusive fits kinds that have one holder at a time.
func Exclusive(form kinds.Form, _ *kinds.Row) bool { return form.Mode == messages.Mode_MODE_EXCLUSIVE }

// StoredAsItself fits the exclusive kinds that Redis has as themselves. A fenced lock is stored as a plain lock.
func StoredAsItself(form kinds.Form, row *kinds.Row) bool {
	return Exclusive(form, row) && row.StoredAs == form.Kind
}

// HasWaitQueue fits kinds whose processes have entries in Lockkeeper's wait queue.
func HasWaitQueue(_ kinds.Form, row *kinds.Row) bool { return row.Features.WaitQueue }

// HasMinimumTime fits kinds whose holds may have a minimum time.
func HasMinimumTime(_ kinds.Form, row *kinds.Row) bool { return row.MinimumTime }

// Blocker makes the lock for which a request of the kind waits while it is held: for readers, the lock of writers.
func Blocker(kind string) Kind {
	readers := kinds.Forms[kind]
	if readers.Mode != messages.Mode_MODE_SHARED {
		return Kinds[kind]
	}
	return Kinds[Words(Exclusive, func(form kinds.Form, _ *kinds.Row) bool { return form.Kind == readers.Kind })[0]]
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
