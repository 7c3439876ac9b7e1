package kinds_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// LockOf returns the lock that the method of its kind returns, and refuses a message that names none.
func TestLockOf_ReturnsTheLockOfItsKind(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	same := map[string]*lockkeeper.Lock{
		"plain": s.Lock(k.LockName + " plain"), "fenced": s.FencedLock(k.LockName + " fenced"), "fair": s.FairLock(k.LockName + " fair"),
		"write": s.ReadWriteLock(k.LockName + " write").Write(), "read": s.ReadWriteLock(k.LockName + " read").Read(),
	}
	if len(same) != len(kinds.Forms) {
		t.Errorf("%d forms have a method, of %d", len(same), len(kinds.Forms))
	}
	for word, lock := range same {
		hold := locktest.Acquire(t, lock)
		// A lock of another kind is refused in this process, since the name is in use.
		again, err := s.LockOf(kinds.Forms[word].Of(lock.Name())).TryAcquire(hold.Context())
		if err != nil || again.Token() != hold.Token() || (again.Token() > 0) != (word == "fenced") {
			t.Errorf("%s: %v, token %d", word, err, again.Token())
		}
	}
	members := []*messages.Lock{kinds.Forms["plain"].Of(k.LockName + " a"), kinds.Forms["read"].Of(k.LockName + " b")}
	if name := s.LockOf(&messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}).Name(); name != k.LockName+" a + "+k.LockName+" b" {
		t.Errorf("the MultiLock is %q", name)
	}
	for what, wrong := range map[string]*messages.Lock{
		"no message": nil, "a semaphore": {Kind: messages.Kind_KIND_SEMAPHORE, Name: k.LockName}, "no members": {Kind: messages.Kind_KIND_MULTI},
		"members of a fair lock":  {Kind: messages.Kind_KIND_FAIR, Name: k.LockName, Members: members},
		"a MultiLock with a name": {Kind: messages.Kind_KIND_MULTI, Name: k.LockName, Members: members},
		"an expirable semaphore":  {Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE, Name: k.LockName}, "no RedLock": {Kind: messages.Kind_KIND_RED, Name: k.LockName},
	} {
		if _, err := s.LockOf(wrong).TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
