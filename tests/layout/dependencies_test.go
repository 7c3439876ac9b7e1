package layout_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/dependencies.md has the direct dependencies of the library, and how many modules a program gets: another one is a
// decision, not an accident.
func TestDependencies_AreThoseOfThePage(t *testing.T) {
	page, goMod := read(t, "dependencies.md")["docs/dependencies.md"], read(t, "go.mod")["go.mod"]
	direct, all := map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+( // indirect)?$`).FindAllStringSubmatch(goMod, -1) {
		all++
		if m[2] == "" {
			direct[m[1]] = true
		}
	}
	documented := map[string]bool{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range regexp.MustCompile(`\[(.+?)\]\(https`).FindAllStringSubmatch(cells[1], -1) {
				documented[m[1]] = true
			}
		}
	}
	if !maps.Equal(direct, documented) {
		t.Errorf("go.mod requires %v, and the page has %v", slices.Sorted(maps.Keys(direct)), slices.Sorted(maps.Keys(documented)))
	}
	if text := fmt.Sprintf("gets %d modules", all-1); !strings.Contains(page, text) { // goleak is only for tests
		t.Errorf("the page does not have %q", text)
	}
}
