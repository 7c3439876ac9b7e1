// Package locks_test tests what all kinds of locks have in common, by call and by message. tests/kinds tests what differs.
package locks_test

// What several files of the tests use.

import (
	"context"
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

var errWork = errors.New("the work has failed")

type work = func(ctx context.Context) error

const invalid = messages.Reason_REASON_INVALID

// heldBy reports whether a System holds the lock with that note.
func heldBy(c lockkeeper.Change, s *locktest.Site, note string) bool {
	return c.Locked && keyspace.SystemOf(c.Holder) == keyspace.SystemOf(s.ID()) && c.Note == note
}

// refusesName checks that a name is refused as invalid, and that the error contains word.
func refusesName(t *testing.T, s *locktest.Site, name, word string) {
	t.Helper()
	for _, err := range locktest.Errors(locktest.Within(t), s.Lock(name)) {
		if locktest.IsError(t, err, lockkeeper.ErrInvalid) != invalid {
			t.Errorf("%q: %v", name, err)
		}
		locktest.ExpectWords(t, err.Error(), word)
	}
	for _, request := range locktest.Requests(&messages.Lock{Name: name}) {
		locktest.ExpectRefusal(t, s.Probe(t), request, invalid, word)
	}
}
