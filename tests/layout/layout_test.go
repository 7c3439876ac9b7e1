package layout_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImportsRunOneWay holds the wall between the packages: what a package may
// import of this module, and who alone may know rueidis and proto.actor.
func TestImportsRunOneWay(t *testing.T) {
	const module = "github.com/lockkeeper-go/lockkeeper"
	may := map[string][]string{
		"internal/lock":     {},
		"scripts":           {},
		"messages":          {},
		"redisio":           {"scripts"},
		"internal/protocol": {"internal/lock", "redisio", "scripts"},
		"internal/backend":  {"internal/lock", "redisio", "internal/protocol"},
		"actors":            {"internal/lock", "messages", "redisio", "internal/protocol", "internal/backend", "internal/boottime", "internal/faultinject"},
		".":                 {"actors", "internal/lock", "messages", "redisio"},
	}
	foreign := map[string][]string{
		"github.com/redis/rueidis":            {"redisio", "actors", "."}, // above redisio only the client's type
		"github.com/asynkron/protoactor-go":   {"messages", "actors", "."},
		"google.golang.org/protobuf":          {"messages", "actors"},
		"go.opentelemetry.io/otel":            {"actors", "."},
		"github.com/lockkeeper-go/lockkeeper": {"internal/lock", "scripts", "messages", "redisio", "internal/protocol", "internal/backend", "actors", "."},
	}
	for dir, allowed := range may {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no Go files (%v)", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if inside, ours := strings.CutPrefix(path, module+"/"); ours && !slices.Contains(allowed, inside) {
					t.Errorf("%s imports %s; package %s may import only %v of this module", file, inside, dir, allowed)
				}
				for prefix, users := range foreign {
					if strings.HasPrefix(path, prefix) && !slices.Contains(users, dir) {
						t.Errorf("%s imports %s, which only %v may", file, path, users)
					}
				}
			}
		}
	}
}
