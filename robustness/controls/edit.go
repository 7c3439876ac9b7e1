// Package controls breaks the safety rules of Lockkeeper, one at a time, to show that the
// suite detects it. A control edits the source, which is compiled into the clients through an
// overlay; the source files stay unchanged.
package controls

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/overlay"
)

// Edit replaces a text that occurs exactly once in a source file.
type Edit = overlay.Edit

// Build compiles the suite with edits of Lockkeeper into a binary in dir.
func Build(dir string, edits []Edit) (binary string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/lockkeeper-go/lockkeeper").Output()
	if err != nil {
		return "", fmt.Errorf("the controls are built from source, in the folder of the suite: %w", err)
	}
	changed, err := overlay.Apply(strings.TrimSpace(string(root)), edits)
	if err != nil {
		return "", err
	}
	list, err := overlay.Write(dir, changed)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "client")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w\n%s", err, out)
	}
	return binary, nil
}
