package main

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// told is what the story must say, in this order.
var told = programtest.InOrder(
	`(anna|bert|carl) +has it\n`, `(anna|bert|carl) +gives it back\n`, `has it, [^\n]+ later`, `has it, [^\n]+ later`,
	`crowd +1000 turns in \S+ took \d+ commands to Redis`,
	`dora +has it\n`, `dora +has it 2 times\n`, `dora +gives it back\n`, `dora +gives it back\n`,
	`redis +the lease had \S+ left, then \S+, then \S+\n`,
	`fred +has it\n`, `gina +asks for it\n`, `fred +dies\n`, `gina +has it, [^\n]+ later`,
	`hugo +is told that it is lost: the key is gone from Redis`,
	`iris +has her context cancelled: lockkeeper: hold "orders": lock was lost`,
	`in all +1010 grants, 2 losses that were told, \d+ commands to Redis`,
)

func TestTold(t *testing.T) { programtest.Told(t, play, told) }

// The program itself, as somebody runs it who has nothing but Go.
func TestProgram(t *testing.T) {
	if out := programtest.Built(t); !told.MatchString(out) {
		t.Errorf("it is not as told:\n%s", out)
	}
}

func TestNotAsTold(t *testing.T) {
	programtest.NotAsTold(t, play)
	server := redistest.Start(t)
	server.Do(t, "SET", key, "not a lock")
	const complaint = "does not get the lock: WRONGTYPE"
	if _, said := programtest.Run(t, play, 1, "-redis", server.URL()); !strings.Contains(said, complaint) {
		t.Error(said)
	}
}
