package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lock is a lock without Redis. The reads of it are counted.
type lock struct {
	mu    sync.Mutex
	owner string
	reads int
	final bool
	err   error
	// heard is called at a release; nil if nothing listens.
	heard func()
}

func (l *lock) how() How {
	return How{
		Read: func(context.Context) (*messages.Status, bool, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.reads++
			return held(l.owner, "", 0), l.final, l.err
		},
		Listen: func(heard func()) (stop func()) {
			l.set(func() { l.heard = heard })
			return func() { l.set(func() { l.heard = nil }) }
		},
		Poll: time.Second,
	}
}

func (l *lock) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// read returns how many reads there were, and what to call at a release.
func (l *lock) read() (reads int, heard func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads, l.heard
}

func held(owner, note string, age time.Duration) *messages.Status {
	return &messages.Status{Locked: true, Owners: []string{owner}, Note: note, HeldAtLeast: durationpb.New(age)}
}

// next expects the next state of a watcher at once, and returns its owner or the text of the error.
func next(t *testing.T, w *Watcher) string {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("nothing"))
	defer cancel()
	state, err := w.Next(ctx)
	if err != nil {
		return err.Error()
	}
	return state.Status.Owners[0]
}

func expect(t *testing.T, want string, watchers ...*Watcher) {
	t.Helper()
	for _, w := range watchers {
		if got := next(t, w); got != want {
			t.Errorf("the next is %q, want %q", got, want)
		}
	}
}

// The tests run in bubbles of testing/synctest: Sleep sets their clock forward and takes no time, and what is due by then
// has happened.

// Any number of watchers causes one read per Poll, none misses a change, and a slow one gets the latest state.
func TestHub_SharesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		l := &lock{owner: "a"}
		var all []*Watcher
		for range 100 {
			all = append(all, h.Join("lock", l.how()))
		}
		slow := h.Join("lock", l.how())
		expect(t, "a", all...)
		for _, owner := range []string{"b", "c", "d"} {
			l.set(func() { l.owner = owner })
			time.Sleep(2 * time.Second)
			expect(t, owner, all...)
			expect(t, "nothing", all...)
		}
		expect(t, "d", slow)
		expect(t, "nothing", slow)
		if reads, _ := l.read(); reads < 4 || reads > 7 {
			t.Errorf("%d reads in 6 s, want one a second", reads)
		}
		for _, w := range append(all, slow) {
			w.Leave()
		}
		synctest.Wait()
		before, heard := l.read()
		time.Sleep(time.Minute)
		if after, _ := l.read(); heard != nil || len(h.subjects) > 0 || after != before {
			t.Errorf("after the last watcher there are %d subjects and %d reads", len(h.subjects), after-before)
		}
		h.Close()
	})
}

// A message causes a read at once, and many messages cause ten in a second.
func TestHub_ReadsAtMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		l := &lock{owner: "a"}
		w := h.Join("lock", l.how())
		expect(t, "a", w)
		time.Sleep(500 * time.Millisecond)
		l.set(func() { l.owner = "b" })
		before, heard := l.read()
		heard()
		expect(t, "b", w)
		for range 1000 {
			heard()
			time.Sleep(time.Millisecond)
		}
		l.set(func() { l.owner = "c" })
		heard()
		time.Sleep(100 * time.Millisecond)
		expect(t, "c", w)
		if after, _ := l.read(); after-before > 13 {
			t.Errorf("%d reads in 1.1 s", after-before)
		}
		w.Leave()
		h.Close()
	})
}

// A watcher gets an error that passes once, and the state after it; a final error, or Close, is the last.
func TestHub_ReportsEachErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		l := &lock{err: errors.New("unavailable")}
		w := h.Join("lock", l.how())
		expect(t, "unavailable", w)
		time.Sleep(5 * time.Second)
		expect(t, "nothing", w)
		l.set(func() { l.owner, l.err = "a", nil })
		time.Sleep(2 * time.Second)
		expect(t, "a", w)
		l.set(func() { l.final, l.err = true, errors.New("rejected") })
		time.Sleep(2 * time.Second)
		expect(t, "rejected", w)
		before, _ := l.read()
		time.Sleep(5 * time.Second)
		expect(t, "nothing", w)
		if after, _ := l.read(); after != before {
			t.Error("there are reads after a final error")
		}

		l.set(func() { l.final, l.err = false, nil })
		again := h.Join("lock", l.how()) // alongside the watcher that has not left yet
		expect(t, "a", again)
		w.Leave()
		if h.subjects["lock"] != again.of {
			t.Error("the lock of another watcher is forgotten")
		}
		h.Close()
		expect(t, ErrClosed.Error(), again, h.Join("lock", l.how()))
		again.Leave()
	})
}

// Since is the earliest time that is known for the same owners, and a change is another owner or note.
func TestState_SinceIsTheEarliestTime(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	two := &messages.Status{Locked: true, Owners: []string{"b", "a"}}
	turned := &messages.Status{Locked: true, Owners: []string{"a", "b"}}
	three := &messages.Status{Locked: true, Owners: []string{"a", "b", "c"}, HeldAtLeast: durationpb.New(time.Hour)}
	some := func(owner string) *messages.Status { // one of many readers, of which a read returns few
		return &messages.Status{Locked: true, Mode: messages.Mode_MODE_SHARED, Holders: 2, Owners: []string{owner}}
	}
	var s State
	for i, c := range []struct {
		at      int
		status  *messages.Status
		changed bool
		since   int
	}{
		{0, held("a", "", 0), true, 0},
		{1, held("a", "", 0), false, 0},
		{2, held("a", "n", 30*time.Second), true, -28}, // its record has been read
		{3, held("a", "n", 0), false, -28},
		{4, held("b", "n", time.Second), true, 3},
		{5, &messages.Status{}, true, 5},
		{9, &messages.Status{}, false, 5},
		{10, two, true, 10},
		{11, turned, false, 10},
		{12, three, true, 12}, // two of them had it before, one of them for an hour
		{13, three, false, 12},
		{14, held("a", "", time.Hour), true, 14 - 3600},
		{15, some("a"), true, 15},
		{16, some("b"), false, 15},
	} {
		var changed bool
		if s, changed = s.next(c.status, at(c.at)); changed != c.changed || !s.Since.Equal(at(c.since)) {
			t.Errorf("read %d: changed %v, since %v, want %+v", i, changed, s.Since.Sub(began), fmt.Sprint(c))
		}
	}
}
