package locks_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// awaitNote waits until both Systems see the note.
func awaitNote(t *testing.T, l func(*locktest.Site) *lockkeeper.Lock, note string, sites ...*locktest.Site) {
	t.Helper()
	for _, s := range sites {
		redistest.Eventually(t, "the note "+note, func() bool {
			status, err := l(s).Inspect(locktest.Within(t))
			return err == nil && status.Locked && status.Note == note
		})
	}
}

// All Systems see the note of the present hold, whatever ended the last hold.
func TestNote_IsThatOfThePresentHold(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Application: "noting"})
	lock := func(s *locktest.Site) *lockkeeper.Lock { return s.Lock(k.LockName) }

	hold := here.Acquire(t, k, lockkeeper.WithNote("10.0.0.1:8080"))
	awaitNote(t, lock, "10.0.0.1:8080", here, there)
	again := here.AcquireIn(t, hold.Context(), k, lockkeeper.WithNote("a re-entry"))
	waits := here.AcquireSoon(t, k, lockkeeper.WithNote("the next"))
	here.AwaitWaiters(t, k, 1)
	last := here.AcquireSoon(t, k)
	here.AwaitWaiters(t, k, 2)
	if all := locktest.Must(here.Locks(locktest.Within(t)))(t); all[0].Note != "10.0.0.1:8080" {
		t.Errorf("listed with the note %q", all[0].Note)
	}
	here.Release(t, again)
	here.Release(t, hold) // the lock passes on, and its owner field stays
	awaitNote(t, lock, "the next", here, there)
	here.Release(t, locktest.Got(t, waits).Hold)
	awaitNote(t, lock, "", here, there)
	here.Release(t, locktest.Got(t, last).Hold)

	here.Acquire(t, k, lockkeeper.WithNote("to be lost"))
	awaitNote(t, lock, "to be lost", there)
	locktest.ForceRelease(t, lock(here), true)
	here.Acquire(t, k) // the record still has the note
	for _, s := range []*locktest.Site{here, there} {
		if status := s.Inspect(t, k); status.Note != "" {
			t.Errorf("a hold without a note has %q", status.Note)
		}
	}
}

// A note of a MultiLock belongs to all its members, and of several readers the first note is shown.
func TestNote_OfAMultiLockIsThatOfAllItsMembers(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Application: "noting"})
	first := func(s *locktest.Site) *lockkeeper.Lock { return s.Lock(k.LockName + " 1") }
	second := func(s *locktest.Site) *lockkeeper.Lock { return s.FairLock(k.LockName + " 2") }
	locktest.Acquire(t, lockkeeper.MultiLock(first(here), second(here)), lockkeeper.WithNote("both"))
	awaitNote(t, first, "both", here, there)
	awaitNote(t, second, "both", here, there)

	read := func(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName + " shared").Read() }
	locktest.Acquire(t, read(here))
	reader := locktest.Acquire(t, read(here), lockkeeper.WithNote("the second"))
	locktest.Acquire(t, read(here), lockkeeper.WithNote("the third"))
	awaitNote(t, read, "the second", here, there)
	locktest.Release(t, reader)
	awaitNote(t, read, "the third", here, there)
}

// A request by message has a note, and a note that is too long is refused.
func TestNote_IsTakenFromMessages(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Application: "noting"})
	lock := func(s *locktest.Site) *lockkeeper.Lock { return s.Lock(k.LockName) }
	p := here.Probe(t)
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Note: strings.Repeat("x", 256)})
	awaitNote(t, lock, strings.Repeat("x", 256), here, there)
	if status := locktest.Ask[*messages.Status](t, there.Probe(t), &messages.Inspect{Lock: k.Message()}); len(status.Note) != 256 {
		t.Errorf("answered with the note %q", status.Note)
	}
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message()})

	long, try := strings.Repeat("x", 257), durationpb.New(0)
	locktest.ExpectRefusal(t, p, &messages.Acquire{Lock: k.Message(), Note: long, Wait: try}, messages.Reason_REASON_INVALID, "257 bytes", "256")
	locktest.Fails(lock(here).TryAcquire(locktest.Within(t), lockkeeper.WithNote(long)))(t, lockkeeper.ErrInvalid, "257 bytes", "256")
	locktest.Fails(lock(here).TryAcquire(locktest.Within(t), lockkeeper.WithNote("\xff")))(t, lockkeeper.ErrInvalid, `\xff`, "UTF-8")
}
