package redisio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The errors of Redis 7, and the errors of Redis 6 where they differ, as replies of a server to a script.
func TestClassify_KnowsTheErrorsOfRedis(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Shared(t).URL())
	sorts := func(text string, want redisio.Error) {
		t.Helper()
		err := client.Do(t.Context(), client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()).Error()
		if err == nil || err.Error() != strings.TrimPrefix(text, "ERR ") {
			t.Fatalf("%q was returned as %v", text, err)
		}
		redistest.ExpectError(t, text, redisio.Classify(err), want)
	}
	const inScript = "ERR Error running script (call to f_71de): @user_script:17: "
	for _, code := range []string{
		"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "UNBLOCKED", "MOVED", "ASK",
	} {
		sorts(code+" and so on", redistest.Passing)
		sorts(inScript+"@user_script: 17: -"+code+" and so on", redistest.Passing)
	}
	for text, want := range map[string]redisio.Error{
		"ERR max number of clients reached":                                                                   redistest.Passing,
		"ERR WAIT cannot be used with replica instances. Please also note":                                    redistest.Passing,
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 71de, on @user_script:13.": redistest.Hinted("choose another name"),
		inScript + "WRONGTYPE Operation against a key holding the wrong kind of value":                        redistest.Hinted("choose another name"),
		"NOAUTH Authentication required.": redistest.Hinted(
			"give the client a user name and password",
		),
		"WRONGPASS invalid username-password pair or user is disabled.":                                                                    redistest.Hinted("check the user name"),
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                                 redistest.Hinted("+evalsha"),
		"ERR ACL failure in script: User locker has no permissions to run the 'hset' command script: 71de, on @user_script:20.":            redistest.Hinted("lacks +hset;"),
		inScript + "@user_script: 20: -NOPERM The user executing the script can't run this command or subcommand":                          redistest.Hinted("a command of the script"),
		"ERR The user executing the script can't publish to the channel mentioned in the command script: 71de, on @user_script:15.":        redistest.Hinted("that channel"),
		"NOPERM User locker has no permissions to run the 'scan' command":                                                                  redistest.Hinted("lacks +scan;"),
		"NOPERM User locker has no permissions to run the 'cluster|slots' command":                                                         redistest.Hinted("lacks +cluster|slots;"),
		"NOPERM No permissions to access a key":                                                                                            redistest.Hinted("that key"),
		"ERR Script attempted to access a non local key in a cluster node script: 71de, on @user_script:15.":                               redistest.Doubtful,
		inScript + "@user_script: 20: Lua script attempted to access a non local key in a cluster node":                                    redistest.Doubtful,
		"ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot script: 71de": redistest.Doubtful,
		"ERR Script attempted to execute a write command while the cluster is down and readonly script: 71de, on @user_script:15.":         redistest.Doubtful,
		"ERR Script attempted to access a slot not served script: 71de, on @user_script:15.":                                               redistest.Doubtful,
		"ERR unknown command `SENTINEL`, with args beginning with: `SENTINELS`, `m`, ":                                                     redistest.Hinted("not a Sentinel"),
		"ERR unknown command 'CLUSTER', with args beginning with: 'SHARDS' ":                                                               redistest.Hinted("master_set"),
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                            redistest.Hinted("braces"),
		"ERR Error compiling script (new function): user_script:1: '=' expected near 'is'":                                                 redistest.Lasting,
		// Texts of the user that look like error codes.
		"ERR unknown command 'EVALSHA', with args beginning with: '71de' '1' 'ROOM' 'TASK' 'BUSY' 'REMOVED' ": redistest.Lasting,
	} {
		sorts(text, want)
	}
}

func TestClassify_KnowsOtherErrors(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for err, want := range map[error]redisio.Error{
		io.EOF: redistest.Doubtful, errors.New("unknown"): redistest.Doubtful, &redisio.Error{Transient: true, Err: errors.New("classified before")}: redistest.Passing,
		context.DeadlineExceeded: redistest.Doubtful, fmt.Errorf("wrapped: %w", context.DeadlineExceeded): redistest.Doubtful,
		&net.OpError{Op: "read", Err: errors.New("connection reset")}: redistest.Doubtful,
		refused: redistest.Passing, fmt.Errorf("wrapped: %w", refused): redistest.Passing,
		rueidis.ErrClosing: {Unsure: true, Hint: "close the Lockkeeper system first"},
	} {
		classified := redisio.Classify(err)
		redistest.ExpectError(t, err.Error(), classified, want)
		if again := redisio.Classify(fmt.Errorf("wrapped: %w", classified)); again != classified {
			t.Errorf("%v became %v", classified, again)
		}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(classified, err) {
			t.Errorf("%v: the cause is lost", err)
		}
	}
	if redisio.Classify(nil) != nil {
		t.Error("nil is not nil")
	}
}
