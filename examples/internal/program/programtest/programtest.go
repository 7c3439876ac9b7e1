// Package programtest has the tests that all examples share.
package programtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Main runs the tests of an example, and looks for goroutines that are left.
func Main(m *testing.M) {
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// InOrder matches a text that has all those lines in it, in this order.
func InOrder(lines ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)` + strings.Join(lines, `.*`))
}

// Told checks what an example says, on a Redis of its own and on a real one, where it
// must leave nothing but keys that begin in one of those ways.
func Told(t *testing.T, play program.Play, told *regexp.Regexp, left ...string) {
	t.Helper()
	server := redistest.Start(t)
	for name, args := range map[string][]string{"embedded": nil, "real": {"-redis", server.URL()}} {
		t.Run(name, func(t *testing.T) {
			out, said := Run(t, play, 0, args...)
			if said != "" {
				t.Error(said)
			}
			if !told.MatchString(out) {
				t.Errorf("it is not as told:\n%s", out)
			}
		})
	}
	for _, key := range server.Keys(t, "*") {
		if !slices.ContainsFunc(left, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
			t.Errorf("left in Redis: %q", key)
		}
	}
}

// Run runs an example, and gives what it said on its two outputs.
func Run(t *testing.T, play program.Play, code int, args ...string) (out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := program.Run("example", play, args, &stdout, &stderr); got != code {
		t.Errorf("%q: exit code %d, want %d, and said %q", args, got, code, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// NotAsTold checks that an example says why it failed.
func NotAsTold(t *testing.T, play program.Play) {
	t.Helper()
	server := redistest.Start(t)
	server.Kill(t)
	for complaint, c := range map[string]struct {
		args []string
		code int
	}{
		"-nonsense":      {[]string{"-nonsense"}, 2},
		"-redis":         {[]string{"-help"}, 0},
		"cannot be used": {[]string{"-redis", "nonsense://x"}, 1},
		"refused":        {[]string{"-redis", server.URL()}, 1},
	} {
		if _, said := Run(t, play, c.code, c.args...); !strings.Contains(said, complaint) {
			t.Errorf("%q: said %q", c.args, said)
		}
	}
}

// Built runs the program itself, as somebody does who has nothing but Go, and gives what
// it says.
func Built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := exec.Command(path)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Error(err)
	}
	return string(out)
}
