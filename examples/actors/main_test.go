package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// told are lines that must be printed, one of them only when Redis can be put out of order.
var (
	told = []string{
		`msg="is done" importer=north`, `msg="is done" importer=south`, `msg="is done" importer=west`,
		`why="a row that cannot be read"`,
		`msg="has given back what was left of its last life" importer=south`,
		`msg="has the lock" importer=south "rows done"=0`, `msg="has the lock" importer=south "rows done"=4`,
		`msg="has lost the lock" importer=west why="the lock was force-released" "rows dropped"=`,
		`msg="has the lock" importer=west "rows done"=0`, `msg="has the lock" importer=west "rows done"=4`,
		`msg="all is imported" ledger="map[north:12 south:12 west:12]"`,
	}
	outage = `msg="fears for the lock, and commits early" importer=north`
)

func check(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if n := strings.Count(out, line); n != 1 {
			t.Errorf("%d times: %s", n, line)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestEmbedded(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run(nil, &out, &errors); code != 0 || errors.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errors.String())
	}
	check(t, out.String(), append(told, outage)...)
}

func TestReal(t *testing.T) {
	server := redistest.Shared(t)
	var out, errors bytes.Buffer
	if code := run([]string{"-redis", server.URL()}, &out, &errors); code != 0 || errors.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errors.String())
	}
	check(t, out.String(), told...)
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// The program itself, as somebody runs it who has nothing but Go.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "actors")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := exec.Command(program)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Error(err)
	}
	check(t, string(out), append(told, outage)...)
}

// An importer that gets no lock at all crashes until the desk has had enough.
func TestNoLockToBeHad(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "SET", "actors-example:ledger", "not a lock")
	var out, errors bytes.Buffer
	if code := run([]string{"-redis", server.URL()}, &out, &errors); code != 1 || !strings.Contains(errors.String(), "has crashed too often") {
		t.Errorf("exit code %d: %s", code, errors.String())
	}
	if !strings.Contains(out.String(), "no lock to be had: WRONGTYPE") {
		t.Error(out.String())
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		code int
		args []string
	}{{0, []string{"-help"}}, {2, []string{"-nonsense"}}, {1, []string{"-redis", "nonsense://x"}}} {
		var out, errors bytes.Buffer
		if code := run(c.args, &out, &errors); code != c.code || errors.Len() == 0 {
			t.Errorf("%q: exit code %d: %s", c.args, code, errors.String())
		}
	}
}
