package machine

import (
	"fmt"
	"testing"
)

// Each reason has a name of its own, and only a reason has one.
func TestReason_HasAName(t *testing.T) {
	seen := map[string]bool{}
	for r := range NumReasons {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("the name of reason %d is %q", r, name)
		}
		seen[r.String()] = true
	}
	if name := NumReasons.String(); name != fmt.Sprint("reason ", uint8(NumReasons)) {
		t.Errorf("the number after the last reason is named %q", name)
	}
}
