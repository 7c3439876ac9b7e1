package main

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// told is what the program must say, in this order.
var told = programtest.InOrder(
	`12 clerks in 2 processes have made 300 transfers in`,
	`there were 300 on all accounts, and there are 300\n`,
	`anna's is free meanwhile\n`,
	`then it is made\n`,
)

func TestTold(t *testing.T) { programtest.Told(t, play, told, "redisson_lock_token:") }

func TestNotAsTold(t *testing.T) { programtest.NotAsTold(t, play) }
