package readwrite_test

// The read/write lock over several real processes.

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// crew is who works in one process.
type crew struct{ readers, writers int }

// together runs crews in processes of their own, and checks what they have seen.
func together(t *testing.T, pause time.Duration, crews ...crew) []locktest.Tally {
	t.Helper()
	const lasts = 5 * time.Second
	k := newRWKey(t, redistest.Shared(t))
	lines := make(chan locktest.Said, len(crews))
	for i, c := range crews {
		locktest.Spawn(t, i, lines, "readwrite", k.Server.URL(), k.LockName, lasts.String(), fmt.Sprint(c.readers), fmt.Sprint(c.writers), pause.String())
	}
	tallies := make([]locktest.Tally, len(crews))
	for range crews {
		line := locktest.Await(t, "the tallies", lines)
		seen := &tallies[line.By.Number]
		if err := json.Unmarshal([]byte(line.Text), seen); err != nil {
			t.Fatalf("%s: %v", line.Text, err)
		}
		t.Logf("process %d: %d reads (longest wait %v), %d writes (longest wait %v)",
			line.By.Number, seen.Reads, seen.LongestRead, seen.Writes, seen.LongestWrite)
		if seen.Intrusions > 0 || len(seen.Errors) > 0 {
			t.Errorf("process %d: %d times somebody was inside beside a writer; errors %q", line.By.Number, seen.Intrusions, seen.Errors)
		}
	}
	k.awaitNothing(t)
	for _, who := range []string{" readers", " writers"} {
		if left, err := k.Do(t, "GET", k.Name+who).AsInt64(); err != nil && !rueidis.IsRedisNil(err) || left != 0 {
			t.Errorf("%d%s inside at the end, %v", left, who, err)
		}
	}
	return tallies
}

// Never a writer beside anyone else.
func TestReadWriteOverProcesses(t *testing.T) {
	for i, seen := range together(t, 4*time.Millisecond, crew{4, 2}, crew{4, 2}, crew{4, 2}) {
		if seen.Reads == 0 || seen.Writes == 0 {
			t.Errorf("process %d: %d reads, %d writes", i, seen.Reads, seen.Writes)
		}
	}
}

// Writers get their turns though readers come all the time: there is never a moment
// without one, as far as it is up to them.
func TestReadWriteWritersDoNotStarve(t *testing.T) {
	crews := []crew{{6, 0}, {6, 1}, {6, 0}, {0, 1}}
	for i, seen := range together(t, 0, crews...) {
		switch {
		case crews[i].writers > 0 && (seen.Writes < 10 || seen.LongestWrite > 4*time.Second):
			t.Errorf("process %d: %d writes, and the longest wait was %v", i, seen.Writes, seen.LongestWrite)
		case crews[i].readers > 0 && seen.Reads < 10:
			t.Errorf("process %d: %d reads", i, seen.Reads)
		}
	}
}
