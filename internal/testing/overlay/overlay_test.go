package overlay

import "testing"

func TestApply_RejectsAmbiguousText(t *testing.T) {
	for _, before := range []string{"not in the file", "return"} {
		if _, err := Apply("..", []Edit{{"lock/lease.go", before, "x"}}); err == nil {
			t.Errorf("an edit of %q, which does not occur exactly once, was accepted", before)
		}
	}
}
