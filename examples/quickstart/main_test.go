package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// told is what the story must say, in this order.
var told = regexp.MustCompile(`(?s)` + strings.Join([]string{
	`(anna|bert|carl) +has it\n`, `(anna|bert|carl) +gives it back\n`, `has it, [^\n]+ later`, `has it, [^\n]+ later`,
	`crowd +1000 turns in \S+ took \d+ commands to Redis`,
	`dora +has it\n`, `dora +has it 2 times\n`, `dora +gives it back\n`, `dora +gives it back\n`,
	`redis +the lease had \S+ left, then \S+, then \S+\n`,
	`fred +has it\n`, `gina +asks for it\n`, `fred +dies\n`, `gina +has it, [^\n]+ later`,
	`hugo +is told that it is lost: the key is gone from Redis`,
	`iris +has her context cancelled: lockkeeper: hold "orders": lock was lost`,
	`in all +1010 grants, 2 losses that were told, \d+ commands to Redis`,
}, `.*`))

func TestTold(t *testing.T) {
	server := redistest.Shared(t)
	for name, args := range map[string][]string{"embedded": nil, "real": {"-redis", server.URL()}} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			if code := run(args, &out, &errors); code != 0 || errors.Len() > 0 {
				t.Errorf("exit code %d: %s", code, errors.String())
			}
			if !told.Match(out.Bytes()) {
				t.Errorf("it is not as told:\n%s", out.String())
			}
		})
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// The program itself, as somebody runs it who has nothing but Go.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := exec.Command(program)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil || !told.Match(out) {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestNotAsTold(t *testing.T) {
	server := redistest.Start(t)
	t.Run("bad flag", func(t *testing.T) { expect(t, 2, "-nonsense", "-nonsense") })
	t.Run("help", func(t *testing.T) { expect(t, 0, "-redis", "-help") })
	t.Run("bad URL", func(t *testing.T) { expect(t, 1, "redis", "-redis", "nonsense://x") })
	t.Run("wrong type", func(t *testing.T) {
		server.Do(t, "SET", key, "not a lock")
		expect(t, 1, "does not get the lock: WRONGTYPE", "-redis", server.URL())
	})
	server.Kill(t)
	t.Run("no server", func(t *testing.T) { expect(t, 1, "refused", "-redis", server.URL()) })
}

func expect(t *testing.T, code int, complaint string, args ...string) {
	t.Helper()
	var out, errors bytes.Buffer
	if got := run(args, &out, &errors); got != code || !strings.Contains(errors.String(), complaint) {
		t.Errorf("exit code %d, and said %q", got, errors.String())
	}
}
