package machinetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts plays the scripts in testdata, each as a subtest; start makes a player with a new machine.
func Scripts(t *testing.T, start func(t *testing.T) *Player) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rule, scripts, _ := strings.Cut(string(text), "\n")
			if !strings.HasPrefix(rule, "// ") {
				t.Errorf("%s does not begin with the rule that it shows", file)
			}
			number := 2 // of the line with the name of the next script
			for _, script := range strings.SplitAfter("\n"+scripts, "\n# ")[1:] {
				name, events, _ := strings.Cut(strings.TrimSuffix(script, "\n# "), "\n")
				first := number + 1
				number += strings.Count(script, "\n")
				t.Run(name, func(t *testing.T) { play(t, file, first, events, start) })
			}
		})
	}
}

// play plays a script, whose first event stands on a line of a file.
func play(t *testing.T, file string, first int, events string, start func(t *testing.T) *Player) {
	var p *Player
	for i, line := range strings.Split(events, "\n") {
		switch {
		case line == "":
			p = nil
		case !strings.HasPrefix(line, "//"):
			if p == nil {
				p = start(t)
			}
			p.at = fmt.Sprintf("%s:%d: ", file, first+i)
			p.Play(line)
		}
	}
}
