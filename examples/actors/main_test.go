package main

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

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
	out, said := programtest.Run(t, importAll, 0)
	if said != "" {
		t.Error(said)
	}
	check(t, out, append(told, outage)...)
}

func TestReal(t *testing.T) {
	server := redistest.Shared(t)
	out, said := programtest.Run(t, importAll, 0, "-redis", server.URL())
	if said != "" {
		t.Error(said)
	}
	check(t, out, told...)
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// The program itself, as somebody runs it who has nothing but Go.
func TestProgram(t *testing.T) { check(t, programtest.Built(t), append(told, outage)...) }

// An importer that gets no lock at all crashes until the desk has had enough.
func TestNoLockToBeHad(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "SET", "actors-example:ledger", "not a lock")
	out, said := programtest.Run(t, importAll, 1, "-redis", server.URL())
	if !strings.Contains(said, "has crashed too often") {
		t.Error(said)
	}
	if !strings.Contains(out, "no lock to be had: WRONGTYPE") {
		t.Error(out)
	}
}

func TestNotAsTold(t *testing.T) { programtest.NotAsTold(t, importAll) }
