package mailbox

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Where an int has 32 bits, the package does not compile, and the compiler says why. It compiles on all
// other machines that Go knows.
func TestNeeds64Bit(t *testing.T) {
	const guard = "needs_64_bit.go"
	platforms, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	narrow := 0
	for _, platform := range strings.Fields(string(platforms)) {
		on := build.Default
		on.GOOS, on.GOARCH, _ = strings.Cut(platform, "/")
		on.CgoEnabled = false
		p, err := on.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		sizes := types.SizesFor("gc", on.GOARCH)
		if sizes == nil {
			t.Fatalf("%s: the size of an int is not known", platform)
		}
		guarded := slices.Contains(p.GoFiles, guard)
		if is32 := sizes.Sizeof(types.Typ[types.Int]) == 4; guarded != is32 {
			t.Errorf("%s: guarded %v, 32 bits %v", platform, guarded, is32)
		} else if is32 {
			narrow++
		}
	}
	if narrow == 0 {
		t.Error("no platform has 32 bits")
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, guard, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = new(types.Config).Check("actors", files, []*ast.File{parsed}, nil)
	if err == nil || !strings.Contains(err.Error(), "needs a 64-bit machine") {
		t.Errorf("the compiler says: %v", err)
	}
}
