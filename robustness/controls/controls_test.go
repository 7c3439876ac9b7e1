package controls

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
)

// The texts that the controls replace exist, and the faults are known.
func TestControls_MatchSource(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All {
		if names[c.Name] {
			t.Errorf("%s: two controls have that name", c.Name)
		}
		names[c.Name] = true
		if _, err := apply("../..", c.Edits); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if _, err := faults.Named(c.Faults); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestApply_RejectsAmbiguousText(t *testing.T) {
	for _, before := range []string{"not in the file", "return"} {
		if _, err := apply("../..", []Edit{{"internal/lock/lease.go", before, "x"}}); err == nil {
			t.Errorf("an edit of %q, which does not occur exactly once, was accepted", before)
		}
	}
}
