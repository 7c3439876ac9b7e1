package layout_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testRun is a command of a recipe that runs tests.
type testRun struct {
	packages   []string // from the root of the repository
	only, skip *regexp.Regexp
	race, tags bool
}

// testRuns returns the test runs of .ci/run and of the recipes that it uses.
func testRuns(t *testing.T) (runs []testRun) {
	t.Helper()
	var recipes string
	for _, text := range read(t, "build/test.sh", "build/robustness.sh", "build/fleet.sh", ".ci/run") {
		recipes += strings.ReplaceAll(text, "\\\n", "")
	}
	variable := regexp.MustCompile(`(?m)^(\w+)='(.*)'$`)
	for _, m := range variable.FindAllStringSubmatch(recipes, -1) {
		recipes = strings.ReplaceAll(recipes, `"$`+m[1]+`"`, m[2])
	}
	for line := range strings.Lines(recipes) {
		_, command, tests := strings.Cut(line, "go test ")
		if !tests || strings.Contains(line, "long) ") { // which .ci/run does not run
			continue
		}
		words := strings.Fields(strings.ReplaceAll(command, "'", ""))
		r, dir := testRun{only: regexp.MustCompile(""), skip: regexp.MustCompile("^$")}, ""
		for i, word := range words {
			switch {
			case word == "-C":
				dir = words[i+1]
			case word == "-run":
				r.only = regexp.MustCompile(words[i+1])
			case word == "-skip":
				r.skip = regexp.MustCompile(words[i+1])
			case word == "-race":
				r.race = true
			case word == "-tags":
				r.tags = true
			case strings.HasPrefix(word, "."):
				r.packages = append(r.packages, path.Join(dir, word))
			}
		}
		runs = append(runs, r)
	}
	return runs
}

// The recipes run each test, in one of their commands: tests that compute for long are in lists of packages, and so are
// the tests of other modules.
func TestRecipes_RunEveryTest(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	constraint := regexp.MustCompile(`(?m)^//go:build .*$`)
	runs, modules := testRuns(t), read(t, "go.mod")
	moduleOf := func(dir string) string {
		for modules[path.Join(dir, "go.mod")] == "" {
			dir = path.Dir(dir)
		}
		return dir
	}
	for name, source := range read(t, "_test.go") {
		dir := path.Dir(name)
		within := func(pattern string) bool {
			parent, tree := strings.CutSuffix(pattern, "...")
			parent = path.Clean(parent)
			return dir == parent || tree && (parent == "." || strings.HasPrefix(dir, parent+"/")) && moduleOf(dir) == moduleOf(parent)
		}
		built := constraint.FindString(source)
		without, tagged := strings.Contains(built, "!race"), strings.Contains(built, "fleet")
		for _, m := range function.FindAllStringSubmatch(source, -1) {
			if !slices.ContainsFunc(runs, func(r testRun) bool {
				return r.only.MatchString(m[1]) && !r.skip.MatchString(m[1]) && !(without && r.race) && (r.tags || !tagged) &&
					slices.ContainsFunc(r.packages, within)
			}) {
				t.Errorf("%s: no recipe of .ci/run runs %s", name, m[1])
			}
		}
	}
}
