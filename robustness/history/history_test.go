package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Read returns the events that were recorded.
func TestRecordAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	r, err := Record(path)
	if err != nil {
		t.Fatal(err)
	}
	start := Now()
	at := func(n int) time.Duration { return start + time.Duration(n)*time.Millisecond }
	parts := []Part{{Lock: "x", Kind: "plain"}}
	for _, e := range []Event{
		{Stage: Asked, At: at(1), ID: 1, Root: 1, Worker: 4, Parts: parts, Unlimited: true},
		{Stage: Granted, At: at(2), ID: 1, Count: 1, Tokens: []int64{7}},
		{Stage: Valid, Since: at(3), At: at(4), ID: 1},
		{Stage: Valid, Since: at(3), At: at(6), ID: 1},
		{Stage: Asked, At: at(7), ID: 2, Root: 1, Parts: parts},
		{Stage: Refused, At: at(8), ID: 2, Err: "cancelled"},
		{Stage: Invalid, At: at(9), ID: 1},
		{Stage: Notified, At: at(10), ID: 1, Err: "expired"},
		{Stage: Releasing, At: at(11), ID: 1},
		{Stage: Released, At: at(12), ID: 1, Err: "lost"},
		{Stage: Stalled, Since: at(12), At: at(20)},
		{Stage: Asked, At: at(21), ID: 3, Root: 3, Parts: parts},
	} {
		r.Add(e)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := Read(path, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	first, second, third := p.Requests[0], p.Requests[1], p.Requests[2]
	if !first.Granted || first.First != at(3) || first.Last != at(6) || first.Invalid != at(9) || first.Notified != at(10) || first.Ended() != at(10) ||
		first.Owner() != "5/1" || !first.Outer() || first.Tokens[0] != 7 || first.ReleaseErr != "lost" {
		t.Errorf("the first request is %+v", first)
	}
	if second.Granted || second.Outer() || second.Owner() != first.Owner() || second.Err != "cancelled" {
		t.Errorf("the second request is %+v", second)
	}
	if third.Answered != 0 {
		t.Errorf("the third request is %+v", third)
	}
	if got := p.Stalled(Span{at(15), at(30)}); got != 5*time.Millisecond {
		t.Errorf("the process stalled for %v of a span, want 5ms", got)
	}
}

// Silence begins with the last answer, or with the first request that has none.
func TestSilence(t *testing.T) {
	r, err := Record(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct {
		Event
		pending int
		since   time.Duration
	}{
		{Event{Stage: Asked, At: 1, ID: 1}, 1, 1},
		{Event{Stage: Asked, At: 2, ID: 2}, 2, 1},
		{Event{Stage: Granted, At: 3, ID: 2}, 1, 3},
		{Event{Stage: Valid, Since: 3, At: 4, ID: 2}, 1, 3},
		{Event{Stage: Refused, At: 5, ID: 1}, 0, 5},
		{Event{Stage: Asked, At: 9, ID: 3}, 1, 9},
	} {
		r.Add(c.Event)
		if pending, since := r.Silence(); pending != c.pending || since != c.since {
			t.Errorf("after %+v: %d since %v, want %d since %v", c.Event, pending, since, c.pending, c.since)
		}
	}
}

// A kill may cut off the last line, and ends the holds.
func TestRead_KilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	text := `{"s":"asked","at":1,"id":1,"root":1}
{"s":"granted","at":2,"id":1}
{"s":"ask`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, 1, 0); err == nil {
		t.Error("a line that is cut off was accepted although the process was not killed")
	}
	p, err := Read(path, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Requests) != 1 || p.Requests[0].Died != 9 {
		t.Errorf("the requests are %+v", p.Requests)
	}
}
