package records

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// A record has the note of the longest hold of each term that has a note, and the notes of the longest terms first.
func TestNotes_ThoseOfTheLongestTermsComeFirst(t *testing.T) {
	changes := 0
	n := Notes{Changed: func() { changes++ }}
	var calls []*request.Call
	for i, text := range []string{"", "a", "b", "c"} {
		call := &request.Call{Note: text}
		n.Add(call, call, uint64(1+i/3)) // the first three share a term
		calls = append(calls, call)
	}
	n.Add(&request.Call{Note: "a re-entry"}, calls[1], 1)
	expect := func(want ...string) {
		t.Helper()
		var r Record
		if n.AddTo(&r); !slices.Equal(r.Notes, want) {
			t.Errorf("the record has %q, want %q", r.Notes, want)
		}
	}
	expect("1 a", "2 c")
	n.Remove(calls[0])
	n.Remove(calls[1])
	n.Remove(calls[1])
	expect("1 b", "2 c")
	n.Remove(calls[3])
	n.Remove(calls[2])
	expect()
	if changes != 6 {
		t.Errorf("there are %d changes, want 6", changes)
	}
}
