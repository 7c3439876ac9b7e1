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

// class is what Sort makes of an error.
type class struct {
	transient, unsure bool
	hint              string // a part of it; "" for none
}

var (
	passing  = class{transient: true}
	doubtful = class{transient: true, unsure: true}
	lasting  = class{}
)

func hinted(hint string) class { return class{hint: hint} }

func expect(t *testing.T, what string, e *Error, want class) {
	t.Helper()
	if e == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if e.Transient != want.transient || e.Unsure != want.unsure {
		t.Errorf("%s: transient %v and unsure %v, want %v and %v: %v", what, e.Transient, e.Unsure, want.transient, want.unsure, e)
	}
	if (e.Hint == "") != (want.hint == "") || !strings.Contains(e.Hint, want.hint) {
		t.Errorf("%s: hint %q, want %q: %v", what, e.Hint, want.hint, e)
	}
	if text := e.Error(); !strings.Contains(text, e.Hint) || !strings.Contains(text, e.Unwrap().Error()) {
		t.Errorf("%s: hint or cause are not in %q", what, text)
	}
}

// The words of Redis 7, and those of Redis 6 where they differ, as replies of the
// server's to a script.
func TestSortRepliesOfRedis(t *testing.T) {
	s := redistest.Shared(t)
	client := connect(t, s.URL())
	for text, want := range map[string]class{
		"LOADING Redis is loading the dataset in memory":                                                                                         passing,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                                                 passing,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                                                passing,
		"CLUSTERDOWN The cluster is down":                                                                                                        passing,
		"CLUSTERDOWN Hash slot not served":                                                                                                       passing,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                                                       passing,
		"READONLY You can't write against a read only replica. script: 71de, on @user_script:17.":                                                passing,
		"ERR Error running script (call to f_71de): @user_script:17: @user_script: 17: -READONLY You can't write against a read only replica.":   passing,
		"OOM command not allowed when used memory > 'maxmemory'. script: 71de, on @user_script:20.":                                              passing,
		"ERR Error running script (call to f_71de): @user_script:20: @user_script: 20: -OOM command not allowed when used memory > 'maxmemory'.": passing,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                                       passing,
		"NOREPLICAS Not enough good replicas to write.":                                                                                          passing,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)":                                           passing,
		"MOVED 3999 127.0.0.1:6381":         passing,
		"ASK 3999 127.0.0.1:6381":           passing,
		"ERR max number of clients reached": passing,
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 71de, on @user_script:13.":                           hinted("choose another name"),
		"ERR Error running script (call to f_71de): @user_script:13: WRONGTYPE Operation against a key holding the wrong kind of value": hinted("choose another name"),
		"NOAUTH Authentication required.":                                                                                                                          hinted("give the client a user name and password"),
		"WRONGPASS invalid username-password pair or user is disabled.":                                                                                            hinted("check the user name"),
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                                                         hinted("+evalsha"),
		"NOPERM User locker has no permissions to run the 'subscribe' command":                                                                                     hinted("+subscribe"),
		"ERR ACL failure in script: User locker has no permissions to run the 'hset' command script: 71de, on @user_script:20.":                                    hinted("lacks a command"),
		"ERR Error running script (call to f_71de): @user_script:20: @user_script: 20: -NOPERM The user executing the script can't run this command or subcommand": hinted("+evalsha"),
		"ERR The user executing the script can't publish to the channel mentioned in the command script: 71de, on @user_script:15.":                                hinted("lacks a command"),
		"ERR Script attempted to access a non local key in a cluster node script: 71de, on @user_script:15.":                                                       doubtful,
		"ERR Error running script (call to f_71de): @user_script:20: @user_script: 20: Lua script attempted to access a non local key in a cluster node":           doubtful,
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                                                    hinted("braces"),
		"ERR Error compiling script (new function): user_script:1: '=' expected near 'is'":                                                                         lasting,
		"ERR unknown command 'EVALSHA', with args beginning with: '71de' '1' 'orders' ":                                                                            lasting,
		"ERR something that nobody has heard of":                                                                                                                   lasting,

		// Words of the user's own that look like codes.
		"ERR unknown command 'EVALSHA', with args beginning with: '71de' '1' 'ROOM' 'TASK' 'BUSY' 'REMOVED' ": lasting,
	} {
		err := client.Do(t.Context(), client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()).Error()
		if err == nil || err.Error() != strings.TrimPrefix(text, "ERR ") {
			t.Fatalf("%q came back as %v", text, err)
		}
		expect(t, text, Sort(err), want)
	}
}

func TestSortOtherErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err  error
		want class
	}{
		{io.EOF, doubtful},
		{io.ErrUnexpectedEOF, doubtful},
		{os.ErrDeadlineExceeded, doubtful},
		{context.DeadlineExceeded, doubtful},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), doubtful},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, doubtful},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, doubtful},
		{refused, passing},
		{fmt.Errorf("wrapped: %w", refused), passing},
		{errors.New("who knows"), doubtful},
		{rueidis.ErrClosing, class{unsure: true, hint: "close the Lockkeeper system first"}},
		{errNotSent, passing},
		{errShortReply, doubtful},
	} {
		expect(t, test.err.Error(), Sort(test.err), test.want)
	}
}

func TestSortKeepsWhatIsSorted(t *testing.T) {
	if Sort(nil) != nil {
		t.Error("nil is not nil")
	}
	first := Sort(io.EOF)
	if again := Sort(first); again != first {
		t.Errorf("%v became %v", first, again)
	}
	if again := Sort(fmt.Errorf("wrapped: %w", first)); again != first {
		t.Errorf("%v became %v", first, again)
	}
	if !errors.Is(first, io.EOF) {
		t.Error("the cause is lost")
	}
}
