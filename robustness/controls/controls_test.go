package controls

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/overlay"
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
		if _, err := overlay.Apply("../..", c.Edits); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if _, err := faults.Named(c.Faults); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// What a control writes into the source compiles.
func TestControls_Compile(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range All {
		changed, err := overlay.Apply(root, c.Edits)
		if err != nil {
			continue // see TestControls_MatchSource
		}
		list, err := overlay.Write(t.TempDir(), changed)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command("go", "build", "-overlay", list)
		command.Dir = root
		for path := range changed {
			if strings.HasSuffix(path, ".go") {
				command.Args = append(command.Args, filepath.Dir(path))
			}
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, out)
		}
	}
}
