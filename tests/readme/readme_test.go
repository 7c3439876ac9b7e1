//go:build unix

// Package readme_test runs the programs that the documents show.
package readme_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestReadme_ProgramsWork holds that the documents show these programs as they are, and that they work. One that leads
// runs until it is interrupted.
func TestReadme_ProgramsWork(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"goroutines": {"README.md", []string{"shipping", "leading", "released"}},
		"actors":     {"README.md", []string{"shipping", "answer: {<nil>} <nil>", "billing", "billed: <nil>"}},
		"shutdown":   {"docs/using.md", []string{"leading", "closed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := os.ReadFile(filepath.Join("..", "..", test.document))
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(filepath.Join(name, "main.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(document), "```go\n"+string(source)+"```\n") {
				t.Errorf("%s does not show tests/readme/%s/main.go as it is", test.document, name)
			}
			if got := run(t, name); !slices.Equal(got, test.want) {
				t.Errorf("%s printed %q, want %q", name, got, test.want)
			}
		})
	}
}

// run returns the lines that a program prints; it interrupts a program that leads.
func run(t *testing.T, name string) (lines []string) {
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "REDIS_URL="+redistest.Start(t).URL())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if scanner.Text() == "leading" {
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s ended with %v", name, err)
	}
	return lines
}
