package main

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/program/programtest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// told is what the program must say, in this order.
var told = programtest.InOrder(
	`without a guard`,
	`with token 1, and reads 100`,
	`with token 2, and reads 100`,
	`writes 90 with token 1\n`,
	`90 boxes are left, and should be 70: bert's update is lost\n`,
	`with the guard in Redis`,
	`anna +has the lock with token (\d+), and reads 100`,
	`writes 90 with token`,
	`refused: the token is \d+, and \d+ was here already\n`,
	`70 boxes are left, as it should be\n`,
	`with the condition in SQL`,
	`writes 90 with token`,
	`refused: the token is \d+, and \d+ was here already\n`,
	`70 boxes are left, as it should be\n`,
)

func TestTold(t *testing.T) { programtest.Told(t, play, told, "redisson_lock_token:{"+prefix+"stock}") }

func TestNotAsTold(t *testing.T) { programtest.NotAsTold(t, play) }

// A guard lets through whoever has the highest token so far, and a higher one; and from
// the moment that the holder of a token reads, nobody writes with a lower one.
func TestGuards(t *testing.T) {
	server := redistest.Shared(t)
	for name, s := range map[string]store{
		"Redis": guarded{server.Client(t), redistest.Name(t)},
		"SQL":   conditional{&table{rows: map[string]row{"boxes": {}}}, "boxes"},
	} {
		t.Run(name, func(t *testing.T) {
			write := func(token int64, boxes int, allowed bool) {
				t.Helper()
				if err := s.write(t.Context(), token, boxes); allowed && err != nil || !allowed && !errors.Is(err, errStale) {
					t.Errorf("token %d writes: %v", token, err)
				}
			}
			read := func(token int64, want int) {
				t.Helper()
				if boxes, err := s.read(t.Context(), token); boxes != want || err != nil {
					t.Errorf("token %d reads %d, %v; want %d", token, boxes, err, want)
				}
			}
			write(8, 1, true)
			write(8, 2, true)
			write(7, 3, false)
			read(9, 2)
			write(8, 3, false)
			if _, err := s.read(t.Context(), 8); !errors.Is(err, errStale) {
				t.Errorf("token 8 reads after token 9: %v", err)
			}
			write(10, 4, true) // higher as a number, lower as a text
			write(9, 5, false)
			read(10, 4)
		})
	}
	server.Do(t, "FLUSHALL")
}
