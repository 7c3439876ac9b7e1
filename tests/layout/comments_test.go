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
	// dotted are words such as Lock.Next and lock.Lock.Next, and files.
	dotted = regexp.MustCompile("(?:^|[^\\w./\"`@-])((?:[A-Za-z]\\w+\\.)+[A-Za-z]\\w*)")
	isFile = regexp.MustCompile(`\.(?:go|lua|md|json|h|xml)$`)
)

// A comment names what is there: a package's type, function, constant or variable that was renamed is renamed in the
// comments of other packages too, and so is a type with its methods and fields. Code in comments is exempt from the second
// rule, except for chains of calls, which have arrows.
func TestComments_NameWhatExists(t *testing.T) {
	files, declared := token.NewFileSet(), map[string]map[string]bool{} // by package
	// The identifiers and types of each package, as in "lock.cfg" and "lock.Lock", and the members of types: "Lock.Next".
	used, types, members := map[string]bool{}, map[string]bool{}, map[string]bool{"proto.actor": true}
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
			case *ast.ImportSpec:
				used[path.Base(strings.Trim(n.Path.Value, `"`))] = true
			case *ast.Ident:
				used[file.Name.Name+"."+n.Name] = true
			case *ast.FuncDecl:
				of[n.Name.Name] = true
				if n.Recv != nil {
					for _, receiver := range identsIn(n.Recv) {
						members[receiver+"."+n.Name.Name] = true
					}
				}
			case *ast.TypeSpec:
				of[n.Name.Name], types[file.Name.Name+"."+n.Name.Name] = true, true
				for _, field := range identsIn(n.Type) {
					members[n.Name.Name+"."+field] = true
				}
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
			for line := range strings.Lines(group.Text()) {
				if ast.IsGenerated(file) || line[0] == '\t' && !strings.Contains(line, "→") {
					continue
				}
				for _, match := range dotted.FindAllStringSubmatch(line, -1) {
					words := strings.Split(match[1], ".")
					for i, name := range words[1:] {
						of := words[i]
						local := file.Name.Name + "." + of
						if members[of+"."+name] || declared[of] != nil { // the first rule is about names of our packages
							continue
						}
						isForeign := !types[local] && (used[of] || used[local]) // of another module's package, or of a variable
						if !isForeign && !isFile.MatchString(match[1]) {
							t.Errorf("%s: there is no %s.%s", files.Position(group.Pos()), of, name)
						}
						break
					}
				}
			}
		}
	}
}

// identsIn returns the identifiers below a node.
func identsIn(node ast.Node) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}
