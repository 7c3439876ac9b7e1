package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// told is what the program must say, in this order.
var told = regexp.MustCompile(`(?s)` + strings.Join([]string{
	`came +A1 B1 C1 A2 B2 C2 A3 B3 C3\n`,
	`left +B2\n`,
	`served +A1 B1 C1 A2 C2 A3 B3 C3\n`,
}, `.*`))

func TestTold(t *testing.T) {
	server := redistest.Shared(t)
	for name, args := range map[string][]string{"embedded": nil, "real": {"-redis", server.URL()}} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			if code := run(args, &out, &errors); code != 0 || errors.Len() > 0 {
				t.Errorf("exit code %d: %s", code, errors.String())
			}
			if !told.Match(out.Bytes()) {
				t.Errorf("it is not as told:\n%s", out.String())
			}
		})
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

func TestNotAsTold(t *testing.T) {
	server := redistest.Start(t)
	for complaint, c := range map[string]struct {
		args []string
		code int
	}{
		"-nonsense": {[]string{"-nonsense"}, 2},
		"-redis":    {[]string{"-help"}, 0},
		"refused":   {[]string{"-redis", server.URL()}, 1},
	} {
		if complaint == "refused" {
			server.Kill(t)
		}
		var out, errors bytes.Buffer
		if code := run(c.args, &out, &errors); code != c.code || !strings.Contains(errors.String(), complaint) {
			t.Errorf("%q: exit code %d, and said %q", c.args, code, errors.String())
		}
	}
}
