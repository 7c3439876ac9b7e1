// Package controls breaks the safety rules of Lockkeeper, one at a time, to show that the
// suite detects it. A control edits the source, which is compiled into the clients through an
// overlay; the source files stay unchanged.
package controls

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit replaces a text that occurs exactly once in a source file.
type Edit struct{ File, Before, After string }

// apply returns the edited files of the module at root, by path.
func apply(root string, edits []Edit) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.File)
		text, known := changed[path]
		if !known {
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(source)
		}
		if n := strings.Count(text, e.Before); n != 1 {
			return nil, fmt.Errorf("%s has changed: this text occurs %d times instead of once:\n%s", e.File, n, e.Before)
		}
		changed[path] = strings.Replace(text, e.Before, e.After, 1)
	}
	return changed, nil
}

// Build compiles the suite with edits of Lockkeeper into a binary in dir.
func Build(dir string, edits []Edit) (binary string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/lockkeeper-go/lockkeeper").Output()
	if err != nil {
		return "", fmt.Errorf("the controls are built from source, in the folder of the suite: %w", err)
	}
	changed, err := apply(strings.TrimSpace(string(root)), edits)
	if err != nil {
		return "", err
	}
	list, err := overlay(dir, changed)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "client")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w\n%s", err, out)
	}
	return binary, nil
}

// overlay writes the edited files into dir, and returns the path of the list that go build -overlay takes.
func overlay(dir string, changed map[string]string) (list string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	files := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range changed {
		file := filepath.Join(dir, fmt.Sprintf("%d-%s", len(files.Replace), filepath.Base(path)))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", err
		}
		files.Replace[path] = file
	}
	text, err := json.Marshal(files)
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o644)
}
