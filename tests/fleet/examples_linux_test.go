package fleet_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The examples stop and kill their processes.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"importer": `north has imported row 1
north has imported row 2
north is stopped
south has imported row 3
south is killed
north has imported row 4
`,
		"bank": `account 1001 has 10
account 1002 has 10
account 1003 has 10
north is stopped
account 1001 has 20
account 1002 has 20
account 1003 has 20
south is killed
account 1001 has 30
account 1002 has 30
account 1003 has 30
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), name)
			if out, err := exec.Command("go", "build", "-C", "../../examples/processes", "-o", program, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if out, err := exec.CommandContext(ctx, program).CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%v, the output is\n%s", err, out)
			}
		})
	}
}
