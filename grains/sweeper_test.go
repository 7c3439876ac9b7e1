package grains

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// All entries are removed, many at a time. A failure is reported at the end of the term, once.
func TestSweeper_RemovesAllEntries(t *testing.T) {
	var removed atomic.Int64
	fails := false
	s := &sweeper{sweep: func(_ context.Context, some []entryOf) error {
		if removed.Add(int64(len(some))); len(some) > maxEntries {
			t.Errorf("%d at a time", len(some))
		}
		if fails {
			return errors.New("as asked")
		}
		return nil
	}}
	add := func() {
		for i := range 3 * maxEntries {
			s.add(entryOf{fmt.Sprint(i), "m#1"})
		}
	}
	add()
	if !s.flush(t.Context()) || removed.Load() != 3*maxEntries {
		t.Errorf("%d are removed", removed.Load())
	}
	fails = true
	add()
	if s.flush(t.Context()) {
		t.Error("a failure is not reported")
	}
	fails = false
	if add(); !s.flush(t.Context()) {
		t.Error("a failure is reported in the next term")
	}
}
