package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// qualified is a name of another package in a comment, such as machine.Effect.
var qualified = regexp.MustCompile(`(^|[^\w./"])([a-z]+)\.([A-Z]\w*)`)

// A comment names what is there: a package's type, function, constant or variable that was renamed is renamed in the
// comments of other packages too.
func TestComments_NameWhatExists(t *testing.T) {
	files, declared := token.NewFileSet(), map[string]map[string]bool{} // by package
	var parsed []*ast.File
	for name, text := range read(t, ".go") {
		file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		of := declared[file.Name.Name]
		if of == nil {
			of = map[string]bool{}
			declared[file.Name.Name] = of
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				of[n.Name.Name] = true
			case *ast.TypeSpec:
				of[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					of[name.Name] = true
				}
			}
			return true
		})
	}
	for _, file := range parsed {
		for _, group := range file.Comments {
			for _, match := range qualified.FindAllStringSubmatch(group.Text(), -1) {
				if of := declared[match[2]]; of != nil && !of[match[3]] {
					t.Errorf("%s: there is no %s.%s", files.Position(group.Pos()), match[2], strings.TrimSpace(match[3]))
				}
			}
		}
	}
}
