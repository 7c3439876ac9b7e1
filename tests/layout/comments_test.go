package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// qualified is a name of another package in a comment, such as machine.Effect.
	qualified = regexp.MustCompile(`(^|[^\w./"])([a-z]+)\.([A-Z]\w*)`)
	// dotted is a name of a type and its method or field, such as Lock.Next, also after a package; files are no names.
	dotted = regexp.MustCompile("(?:^|[^\\w./\"`@-])((?:[A-Za-z]\\w+\\.)+[A-Za-z]\\w*)")
	isFile = regexp.MustCompile(`\.(?:go|lua|md|json|h|xml)$`)
)

// A comment names what is there: a package's type, function, constant or variable that was renamed is renamed in the
// comments of other packages too, and so is a method or a field. Code in comments may use names of its own for types and
// variables; chains of calls, which have arrows, may not.
func TestComments_NameWhatExists(t *testing.T) {
	files, declared := token.NewFileSet(), map[string]map[string]bool{} // by package
	// Imports, the identifiers of each package, and what belongs to each type: "rueidis", "lock.cfg", "Lock.Next".
	used := map[string]bool{"proto.actor": true}
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
		use := func(before string, in ast.Node, after string) {
			ast.Inspect(in, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[before+id.Name+after] = true
				}
				return true
			})
		}
		use(file.Name.Name+".", file, "")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				used[path.Base(strings.Trim(n.Path.Value, `"`))] = true
			case *ast.FuncDecl:
				of[n.Name.Name] = true
				if n.Recv != nil {
					use("", n.Recv, "."+n.Name.Name)
				}
			case *ast.TypeSpec:
				of[n.Name.Name] = true
				use(n.Name.Name+".", n.Type, "")
			case *ast.ValueSpec:
				for _, name := range n.Names {
					of[name.Name] = true
				}
			}
			return true
		})
	}
	for _, file := range parsed {
		own := file.Name.Name
		for _, group := range file.Comments {
			for _, match := range qualified.FindAllStringSubmatch(group.Text(), -1) {
				if of := declared[match[2]]; of != nil && !of[match[3]] {
					t.Errorf("%s: there is no %s.%s", files.Position(group.Pos()), match[2], strings.TrimSpace(match[3]))
				}
			}
			for line := range strings.Lines(group.Text()) {
				for _, match := range dotted.FindAllStringSubmatch(line, -1) {
					words := strings.Split(match[1], ".")
					if isFile.MatchString(match[1]) || ast.IsGenerated(file) || line[0] == '\t' && !strings.Contains(line, "→") {
						continue
					}
					for len(words) > 1 && (declared[words[0]] != nil || used[words[0]+"."+words[1]]) { // as the first rule says, or a member
						words = words[1:]
					}
					if isForeign := !declared[own][words[0]] && (used[words[0]] || used[own+"."+words[0]]); len(words) > 1 && !isForeign {
						t.Errorf("%s: there is no %s.%s", files.Position(group.Pos()), words[0], words[1])
					}
				}
			}
		}
	}
}
