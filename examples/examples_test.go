//go:build unix

// Package examples_test runs the examples, and compares their output.
package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// printed is the output of each example. An ellipsis stands for any text.
var printed = map[string]string{
	"quickstart": `
A goroutine acquires a lock:
  meanwhile another process is refused: true
  the holder may acquire it again: it is held 2 times
Three actors request it, by message:
  … has the lock
  … releases it
  … has the lock
  … releases it
  … has the lock
  … releases it
A thousand actors request it; it is handed off from one to the next without Redis:
  1000 turns took … and … commands to Redis
The holder dies, and an actor in another process waits:
  dora has the lock
  emil has the lock
  emil releases it
An operator deletes the key in Redis:
  fred has the lock
  fred is notified: the key …
Another process releases the lock by force:
  the context of the work is cancelled: lockkeeper: hold "orders": lock was lost: …
`,
	"payments": `
north cleans up
after 20 payments anna has 20
while another process holds the lock of bert's account, the answer is 409 Conflict
for an account with an impossible name the answer is 400 Bad Request
north cleans up no more
south cleans up
a payment's spans: lockkeeper.acquire, lockkeeper.hold, lockkeeper.release
south cleans up no more
`,
	"actors": `(sorted)
an operator releases the lock of south by force
north has the lock, and the ledger has 0 of its rows
north has the lock, and the ledger has 2 of its rows
north is done
south has lost the lock: the lock was force-released
south has the lock, and the ledger has 0 of its rows
south has the lock, and the ledger has 3 of its rows
south is done
the ledger has 5 rows of north
the ledger has 5 rows of south
the ledger has 5 rows of west
west has the lock, and the ledger has 0 of its rows
west is done
`,
	"cache": `
50 requests in 2 processes have read edition 1
50 requests in 2 processes have read edition 2
while two read, a writer is refused: true
`,
	"console": `
catalogue: held by shop, waited for by 0
invoices: held by billing, waited for by 2
parcel:1001: held by shop, waited for by 0
parcel:1002: held by shop, waited for by 0
parcel:1003: held by shop, waited for by 0
printer: held by billing, waited for by 1
price-list: lease lost: forced: the lock was force-released (…)
`,
	"semaphore": `
the semaphore is created: true
the semaphore is created: false
200 calls were served, more than 10 at the same time: false
10 permits are free
`,
	"fairqueue": `
anna comes
bert comes
carl comes
dora comes
emil comes
fred comes
carl has left
anna is served
bert is served
dora is served
emil is served
fred is served
`,
	"fencing": `
anna has token 1 and reads 100
anna is paused for longer than her lease
bert has token … and reads 100
anna goes on, and takes 10
anna is too late: the token is 1, and … was used already
bert takes 20, and there are 80
anna's release says: lockkeeper: hold "boxes": lock was lost: its fixed lease of 300ms is over
`,
	"forwarding": `
tea asks anna: served by anna
coffee asks bert: served by anna
cake asks bert: served by bert
`,
	"leader": `
anna leads
anna leads no more: the leader has resigned
bert leads
bert leads no more: lockkeeper: hold "leader": lock was lost: the lock was force-released
bert leads
bert leads no more: the leader has resigned
`,
	"metrics": `
a second one is refused: true
lockkeeper_actors 0
lockkeeper_grants_total{lockkeeper_kind="plain",lockkeeper_way="redis"} 1
lockkeeper_grants_total{lockkeeper_kind="plain",lockkeeper_way="reentry"} 1
lockkeeper_hold_duration_seconds_count{lockkeeper_kind="plain"} 1
lockkeeper_holds{lockkeeper_kind="plain"} 0
lockkeeper_redis_call_duration_seconds_count{lockkeeper_result="done",lockkeeper_script="acquire"} 2
lockkeeper_redis_call_duration_seconds_count{lockkeeper_result="done",lockkeeper_script="release"} 2
lockkeeper_redis_call_duration_seconds_count{lockkeeper_result="done",lockkeeper_script="system_remove"} 1
lockkeeper_redis_call_duration_seconds_count{lockkeeper_result="done",lockkeeper_script="system_renew"} …
lockkeeper_redis_calls_total{lockkeeper_result="done",lockkeeper_script="acquire"} 2
lockkeeper_redis_calls_total{lockkeeper_result="done",lockkeeper_script="release"} 2
lockkeeper_redis_calls_total{lockkeeper_result="done",lockkeeper_script="system_remove"} 1
lockkeeper_redis_calls_total{lockkeeper_result="done",lockkeeper_script="system_renew"} …
lockkeeper_refusals_total{lockkeeper_kind="plain",lockkeeper_reason="held"} 1
lockkeeper_wait_duration_seconds_count{lockkeeper_kind="plain",lockkeeper_result="granted"} 2
lockkeeper_wait_duration_seconds_count{lockkeeper_kind="plain",lockkeeper_result="refused"} 1
lockkeeper_waiters{lockkeeper_kind="plain"} 0
`,
	"orders": `
anna is packing order 1001
bert skips order 1001: another worker is shipping it
bert has shipped order 1002
anna has shipped order 1001
bert skips order 1001: it is shipped
`,
	"redlock": `
anna has the lock on 3 servers
bert is refused: true
one server is killed: anna's lease is renewed on the other 2
anna releases it, and bert is granted it
a second one is killed: bert is notified: true
anna does not get it either: true
`,
	"startsignal": `
some are missing: true
all are ready
all have run
`,
	"transfer": `
anna has 1060
bert has 1000
carl has 940
after 120 transfers there are 3000 of 3000 on the accounts
a transfer of 5000: anna has 1060, which is less than 5000
`,
}

// Each example prints its expected output, on its own Redis and on a real one, where it leaves
// only its data.
func TestExamples(t *testing.T) {
	bin, server := build(t), redistest.Start(t)
	t.Run("runs", func(t *testing.T) {
		for name, want := range printed {
			run(t, want, filepath.Join(bin, name))
			if !slices.Contains([]string{"quickstart", "redlock"}, name) { // which have no such flag
				run(t, want, filepath.Join(bin, name), "-redis", server.URL())
			}
		}
	})
	data := regexp.MustCompile(`^(balance:(anna|bert|carl)|stock:boxes|redisson_lock_token:\{(boxes|parcel:100\d)\}|service|lockkeeper_calls:.*)$`) // the last of these expire
	for _, key := range server.Keys(t, "*") {
		if !data.MatchString(key) {
			t.Errorf("left in Redis: %q", key)
		}
	}
}

// build builds all examples, with the race detector if it is on.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	args := []string{"build", "-o", dir, "-ldflags=-s -w"} // debug information takes as long as the rest
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "./...")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	built, err := os.ReadDir(dir)
	if err != nil || len(built) != len(printed) {
		t.Errorf("there are %d examples, of which %d run: %v, %v", len(built), len(printed), built, err)
	}
	return dir
}

func run(t *testing.T, want, path string, args ...string) {
	t.Run(strings.Join(append([]string{filepath.Base(path)}, args...), " "), func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 3*redistest.Limit) // all run at the same time
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		got := string(out)
		if rest, sorted := strings.CutPrefix(want, "(sorted)"); sorted {
			want = rest
			lines := strings.SplitAfter(got, "\n")
			slices.Sort(lines)
			got = strings.Join(lines, "")
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(want, "\n")), "…", ".*")
		if err != nil || !regexp.MustCompile(`\A`+pattern+`\z`).MatchString(got) {
			t.Errorf("%v, the output is\n%s\nand should be%s", err, out, want)
		}
	})
}
