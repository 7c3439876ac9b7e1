package main

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// told is what the program must say, in this order.
var told = programtest.InOrder(
	`3 readers in 2 processes\n`,
	`a writer, when all of them have left\n`,
	`nobody beside it\n`,
	`it writes and reads, and nobody else reads\n`,
	`it only reads, others read as well, and nobody writes\n`,
	`lock cannot be re-entered`,
)

func TestTold(t *testing.T) { programtest.Told(t, play, told) }

func TestNotAsTold(t *testing.T) { programtest.NotAsTold(t, play) }
