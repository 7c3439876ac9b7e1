package controls

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
)

// The places that the controls change are still there, and the faults are known.
func TestControlsFitTheSource(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All {
		if names[c.Name] {
			t.Errorf("%s: there are two of that name", c.Name)
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

func TestAnEditMustFit(t *testing.T) {
	for _, before := range []string{"this is not in it", "return"} {
		if _, err := apply("../..", []Edit{{"internal/lock/lease.go", before, "x"}}); err == nil {
			t.Errorf("an edit of %q, which is not there exactly once, was accepted", before)
		}
	}
}
