package scripts_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The parts of a script are one text, so a name that two of them define hides the first from those that follow.
func TestScripts_DefineEachNameOnce(t *testing.T) {
	local := regexp.MustCompile(`(?m)^local (?:function )?([\w, ]+)`)
	for _, s := range scripts.All {
		defined := map[string]bool{}
		for _, m := range local.FindAllStringSubmatch(s.Source, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				name = strings.TrimSpace(name)
				if defined[name] {
					t.Errorf("%s defines %s twice", s.Name, name)
				}
				defined[name] = true
			}
		}
		if len(defined) == 0 {
			t.Errorf("%s: no name was found", s.Name)
		}
	}
}
