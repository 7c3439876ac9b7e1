package main

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// told is what the program must say, in this order.
var told = programtest.InOrder(
	`came +A1 B1 C1 A2 B2 C2 A3 B3 C3\n`,
	`left +B2\n`,
	`served +A1 B1 C1 A2 C2 A3 B3 C3\n`,
)

func TestTold(t *testing.T) { programtest.Told(t, play, told) }

func TestNotAsTold(t *testing.T) { programtest.NotAsTold(t, play) }
