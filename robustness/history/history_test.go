package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Silence begins with the last answer, or with the first request that has none.
func TestSilence_BeginsWithTheLastAnswer(t *testing.T) {
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
func TestRead_KillEndsAllHolds(t *testing.T) {
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
