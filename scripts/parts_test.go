package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

var (
	luaLocals = regexp.MustCompile(`(?m)^local (?:function )?([\w, ]+)`)
	luaNoCode = regexp.MustCompile(`--.*|'[^']*'|"[^"]*"`) // comments and texts
	luaFields = regexp.MustCompile(`[.:]\w+|\w+ = `)
	luaNames  = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// localNames returns the names that a text defines for all that follows, as often as it does.
func localNames(lua string) (names []string) {
	for _, m := range luaLocals.FindAllStringSubmatch(lua, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// A script is one text, so a name that two of its files define hides the first from those that follow.
func TestScripts_DefineEachNameOnce(t *testing.T) {
	for _, s := range scripts.All {
		names := localNames(s.Source)
		slices.Sort(names)
		for i, name := range names[1:] {
			if name == names[i] {
				t.Errorf("%s defines %s twice", s.Name, name)
			}
		}
	}
}

// A file includes those that define the names it uses, each once and before it uses them, and no others: a name that is
// not defined fails a script only when it gets there, and a definition that is not needed costs time.
func TestScripts_IncludeWhatTheyUse(t *testing.T) {
	sources, definedIn := map[string]string{}, map[string][]string{}
	for _, pattern := range []string{"*.lua", "common/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = string(source)
			for _, name := range localNames(sources[file]) {
				if strings.HasPrefix(file, "common/") {
					definedIn[name] = append(definedIn[name], file)
				}
			}
		}
	}
	includes := 0
	for file, source := range sources {
		own, used := localNames(source), map[string]bool{} // the files that it includes, and whether it uses them
		for line := range strings.Lines(source) {
			if part, ok := strings.CutPrefix(strings.TrimSpace(line), "--- include "); ok {
				if _, twice := used[part]; twice {
					t.Errorf("%s includes %s twice", file, part)
				}
				used[part] = false
				includes++
				continue
			}
			code := luaFields.ReplaceAllString(luaNoCode.ReplaceAllString(line, ""), "")
			for _, name := range luaNames.FindAllString(code, -1) {
				if definedIn[name] == nil || slices.Contains(own, name) {
					continue
				}
				from := slices.IndexFunc(definedIn[name], func(part string) bool { _, ok := used[part]; return ok })
				if from < 0 {
					t.Errorf("%s uses %s, but does not include %s before", file, name, definedIn[name])
					continue
				}
				used[definedIn[name][from]] = true
			}
		}
		for part, isUsed := range used {
			if !isUsed {
				t.Errorf("%s includes %s, but does not use it", file, part)
			}
		}
	}
	if includes == 0 {
		t.Error("no file includes another")
	}
}
