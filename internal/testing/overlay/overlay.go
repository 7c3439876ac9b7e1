// Package overlay edits source files for go build -overlay: the files stay unchanged. Controls break a rule with it, to
// show that a suite notices.
//
//	changed, err := overlay.Apply(root, []overlay.Edit{{"lock.go", "if held {", "if false {"}})
//	list, err := overlay.Write(t.TempDir(), changed)
//	err = exec.Command("go", "test", "-overlay", list, "./tests/locks").Run() // must fail
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Edit is a source file, a text that occurs exactly once in it, and what replaces that.
type Edit [3]string

// Apply returns the edited files below root, by path.
func Apply(root string, edits []Edit) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range edits {
		file, before, after := e[0], e[1], e[2]
		path := filepath.Join(root, file)
		text, known := changed[path]
		if !known {
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(source)
		}
		if n := strings.Count(text, before); n != 1 {
			return nil, fmt.Errorf("%s has changed: this text occurs %d times instead of once:\n%s", file, n, before)
		}
		changed[path] = strings.Replace(text, before, after, 1)
	}
	return changed, nil
}

// Write writes the edited files into dir, and returns the path of the list that go build -overlay takes.
func Write(dir string, changed map[string]string) (list string, err error) {
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
