//go:build unix

package readme_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// known is what the examples of the documents use without declaring it.
const known = `package snippets

import (
	"context"
	"net/http"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
)

var (
	ctx         context.Context
	sys, locks  *lockkeeper.System
	systems     []*lockkeeper.System
	config      lockkeeper.Config
	actorSystem *actor.ActorSystem
	mux         *http.ServeMux
)

type (
	Transfer struct{}
	Booked   struct{ Failed bool }
	ledger   struct{ idle *time.Timer }
)
`

const imports = `package snippets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/lockkeepertest"
)
`

// harmless are the errors of an example that is a part of a program: what it does not show, and what it does not use.
var harmless = regexp.MustCompile(`undefined: [a-z]\w*$|declared and not used|imported and not used|too many return values|have \(|want \(|is not used$`)

// The examples in the documents use functions, methods and options that there are, with arguments that fit.
func TestDocs_ExamplesFitTheAPI(t *testing.T) {
	dir := t.TempDir()
	replace := map[string]string{}
	add := func(name, source string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		at, err := filepath.Abs(filepath.Join("snippets", name))
		if err != nil {
			t.Fatal(err)
		}
		replace[at] = path
	}
	add("known.go", known)
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, "../../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```go\n")
		line := 1
		for i, part := range parts[1:] {
			line += strings.Count(parts[i], "\n") + 1
			code, _, _ := strings.Cut(part, "```")
			if strings.HasPrefix(code, "package ") {
				continue // a whole program, which is run
			}
			code = strings.ReplaceAll(code, "…", "panic(0)")
			where := fmt.Sprintf("//line %s:%d\n", filepath.Base(document), line)
			if strings.HasPrefix(code, "func ") {
				code = imports + where + code
			} else {
				code = imports + "\nfunc _() {\n" + where + code + "\n}\n"
			}
			add(fmt.Sprintf("%s_%d.go", strings.TrimSuffix(filepath.Base(document), ".md"), i), code)
		}
	}
	if len(replace) < 10 {
		t.Errorf("there are only %d examples", len(replace)-1)
	}
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-gcflags=-e", "./snippets").CombinedOutput()
	if err == nil {
		t.Error("the examples compile as they are: check that they are compiled at all")
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimRight(line, "\n"); !harmless.MatchString(line) && !strings.HasPrefix(line, "# ") {
			t.Errorf("the compiler reports %s", line)
		}
	}
}
