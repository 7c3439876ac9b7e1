package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

func TestMain(m *testing.M) {
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// told is what the program must say, in this order.
var told = regexp.MustCompile(`(?s)` + strings.Join([]string{
	`anna has the lock on 5 servers, after \S+ in which they had no vote yet\n`,
	`bert does not get it\n`,
	`2 servers are killed: anna's lease is renewed by the other 3\n`,
	`anna gives it back, and bert has it\n`,
	`a third one is killed: bert is told\n`, `lock was lost`,
	`and anna\n`, `redis is unavailable: [345] of 5 servers failed, and 3 are needed`,
}, `.*`))

func TestTold(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run(nil, &out, &errors); code != 0 || errors.Len() > 0 {
		t.Errorf("exit code %d: %s", code, errors.String())
	}
	if !told.Match(out.Bytes()) {
		t.Errorf("it is not as told:\n%s", out.String())
	}
}

// On servers of somebody else's nothing is killed, and nothing is left.
func TestServersOfOnesOwn(t *testing.T) {
	var servers []*redistest.Server
	var args []string
	for range 3 {
		server := redistest.Start(t)
		servers, args = append(servers, server), append(args, "-redis", server.URL())
	}
	var out, errors bytes.Buffer
	if code := run(args, &out, &errors); code != 0 || !strings.HasSuffix(out.String(), "anna gives it back, and bert has it\n") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errors.String())
	}
	for _, server := range servers {
		// What stays is the record of how long the server has been watched.
		if keys := server.Keys(t, "*"); len(keys) != 1 || keys[0] != redisio.Memory(prefix) {
			t.Errorf("left in Redis: %q", keys)
		}
	}
}

func TestNotAsTold(t *testing.T) {
	url := redistest.Shared(t).URL()
	t.Setenv("PATH", "")
	for complaint, c := range map[string]struct {
		args []string
		code int
	}{
		"-nonsense":                     {[]string{"-nonsense"}, 2},
		"URL of one of the servers":     {[]string{"-help"}, 0},
		"there is no redis-server":      {nil, 1},
		"it takes at least 3, better 5": {[]string{"-redis", url, "-redis", url}, 1},
	} {
		var out, errors bytes.Buffer
		if code := run(c.args, &out, &errors); code != c.code || !strings.Contains(errors.String(), complaint) {
			t.Errorf("%q: exit code %d, and said %q", c.args, code, errors.String())
		}
	}
}
