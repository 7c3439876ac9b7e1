package redisio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The errors of Redis 7, and those of Redis 6 where they differ, as replies of a
// server to a script.
func TestSortRepliesOfRedis(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	sorts := func(text string, want Error) {
		t.Helper()
		err := client.Do(t.Context(), client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()).Error()
		if err == nil || err.Error() != strings.TrimPrefix(text, "ERR ") {
			t.Fatalf("%q was returned as %v", text, err)
		}
		expect(t, text, Sort(err), want)
	}
	const inScript = "ERR Error running script (call to f_71de): @user_script:17: "
	for _, code := range []string{
		"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "UNBLOCKED", "MOVED", "ASK",
	} {
		sorts(code+" and so on", passing)
		sorts(inScript+"@user_script: 17: -"+code+" and so on", passing)
	}
	for text, want := range map[string]Error{
		"ERR max number of clients reached":                                                                                                passing,
		"ERR WAIT cannot be used with replica instances. Please also note":                                                                 passing,
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 71de, on @user_script:13.":                              hinted("choose another name"),
		inScript + "WRONGTYPE Operation against a key holding the wrong kind of value":                                                     hinted("choose another name"),
		"NOAUTH Authentication required.":                                                                                                  hinted("give the client a user name and password"),
		"WRONGPASS invalid username-password pair or user is disabled.":                                                                    hinted("check the user name"),
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                                 hinted("+evalsha"),
		"ERR ACL failure in script: User locker has no permissions to run the 'hset' command script: 71de, on @user_script:20.":            hinted("lacks +hset;"),
		inScript + "@user_script: 20: -NOPERM The user executing the script can't run this command or subcommand":                          hinted("a command of the script"),
		"ERR The user executing the script can't publish to the channel mentioned in the command script: 71de, on @user_script:15.":        hinted("that channel"),
		"NOPERM User locker has no permissions to run the 'scan' command":                                                                  hinted("lacks +scan;"),
		"NOPERM User locker has no permissions to run the 'cluster|slots' command":                                                         hinted("lacks +cluster|slots;"),
		"NOPERM No permissions to access a key":                                                                                            hinted("that key"),
		"ERR Script attempted to access a non local key in a cluster node script: 71de, on @user_script:15.":                               doubtful,
		inScript + "@user_script: 20: Lua script attempted to access a non local key in a cluster node":                                    doubtful,
		"ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot script: 71de": doubtful,
		"ERR Script attempted to execute a write command while the cluster is down and readonly script: 71de, on @user_script:15.":         doubtful,
		"ERR Script attempted to access a slot not served script: 71de, on @user_script:15.":                                               doubtful,
		"ERR unknown command `SENTINEL`, with args beginning with: `SENTINELS`, `m`, ":                                                     hinted("none"),
		"ERR unknown command 'CLUSTER', with args beginning with: 'SHARDS' ":                                                               hinted("master_set"),
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                            hinted("braces"),
		"ERR Error compiling script (new function): user_script:1: '=' expected near 'is'":                                                 lasting,
		// Texts of the user that look like error codes.
		"ERR unknown command 'EVALSHA', with args beginning with: '71de' '1' 'ROOM' 'TASK' 'BUSY' 'REMOVED' ": lasting,
	} {
		sorts(text, want)
	}
}

func TestSortOtherErrors(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for err, want := range map[error]Error{
		io.EOF: doubtful, errors.New("unknown"): doubtful, errShortReply: doubtful, errNotSent: passing,
		context.DeadlineExceeded: doubtful, fmt.Errorf("wrapped: %w", context.DeadlineExceeded): doubtful,
		&net.OpError{Op: "read", Err: errors.New("connection reset")}: doubtful,
		refused: passing, fmt.Errorf("wrapped: %w", refused): passing,
		errUnexpectedReply: {Unsure: true, Hint: "without a proxy that changes replies"},
		rueidis.ErrClosing: {Unsure: true, Hint: "close the Lockkeeper system first"},
	} {
		sorted := Sort(err)
		expect(t, err.Error(), sorted, want)
		if again := Sort(fmt.Errorf("wrapped: %w", sorted)); again != sorted {
			t.Errorf("%v became %v", sorted, again)
		}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(sorted, err) {
			t.Errorf("%v: the cause is lost", err)
		}
	}
	if Sort(nil) != nil {
		t.Error("nil is not nil")
	}
}

// keepBusy keeps the server busy with a script until the result is called. The server
// must have been started with a short lua-time-limit.
func keepBusy(t *testing.T, s *redistest.Server) (end func()) {
	t.Helper()
	client, done := connect(t, s.URL()), make(chan error)
	go func() {
		done <- client.Do(t.Context(), client.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	redistest.Eventually(t, "the server to be busy", func() bool { return s.Do(t, "PING").Error() != nil })
	return func() {
		do(t, s, "SCRIPT", "KILL")
		if err := <-done; err == nil {
			t.Error("the script was not killed")
		}
	}
}

// failToSave makes the server refuse to write (MISCONF): the directory for its snapshots is gone.
func failToSave(t *testing.T, s *redistest.Server) {
	t.Helper()
	dir, err := s.Do(t, "CONFIG", "GET", "dir").AsStrMap()
	if err != nil || os.RemoveAll(dir["dir"]) != nil {
		t.Fatal(err, dir)
	}
	do(t, s, "CONFIG", "SET", "save", "3600 1")
	do(t, s, "BGSAVE")
	redistest.Eventually(t, "the snapshot to fail", func() bool { return s.Do(t, "PING").Error() != nil })
}

// user adds a user to the server, and returns the URL with which to log in.
func user(t *testing.T, s *redistest.Server, rules ...string) (url string) {
	t.Helper()
	do(t, s, append(strings.Fields("ACL SETUSER user reset on >secret"), strings.Fields(strings.Join(rules, " "))...)...)
	return "redis://user:secret@" + s.Addr()
}
