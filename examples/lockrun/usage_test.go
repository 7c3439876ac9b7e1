//go:build unix

package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestBadUsage(t *testing.T) {
	url := redistest.Shared(t).URL()
	for _, c := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"-lock", "x"}, exitUsage, "the command is missing"},
		{[]string{"true"}, exitUsage, "-lock is missing"},
		{[]string{"-lock", "", "true"}, exitUsage, "flag -lock: a name is expected"},
		{[]string{"-lock", "x", "-lock", "y", "-lock", "x", "true"}, exitUsage, `"x" for flag -lock: it is named twice`},
		{[]string{"-lock", "x", "-kind", "exclusive", "true"}, exitUsage, "the kinds are fair, fenced, read, reentrant, write"},
		{[]string{"-lock", "x", "-kind", "", "true"}, exitUsage, "flag -kind: the kinds are"},
		{[]string{"-lock", "x", "-lock", strings.Repeat("y", 513), "true"}, exitUsage, "513 bytes"},
		{append(manyLocks(65), "true"), exitUsage, "a MultiLock of 65 locks: it has 1 to 64"},
		{[]string{"-lock", "x", "-wait", "5", "true"}, exitUsage, "a duration is expected"},
		{[]string{"-lock", "x", "-wait", "-1s", "true"}, exitUsage, "must not be negative"},
		{[]string{"-lock", "x", "-lease", "0", "true"}, exitUsage, "a lease"},
		{[]string{"-lock", "x", "-lease", "1ms", "true"}, exitUsage, "the lease is 1ms"},
		{[]string{"-lock", "x", "-watchdog", "1ms", "true"}, exitUsage, "Watchdog is 1ms"},
		{[]string{"-lock", "x", "-watchdog", "0", "true"}, exitUsage, "-watchdog must not be 0"},
		{[]string{"-lock", "x", "-grace", "-1s", "true"}, exitUsage, "-grace must not be negative"},
		{[]string{"-lock", "x", "-nonsense", "true"}, exitUsage, "-nonsense"},
		{[]string{"-lock", strings.Repeat("x", 513), "true"}, exitUsage, "513 bytes"},
		{[]string{"-lock", "x", "-redis", "nonsense://x", "true"}, exitUsage, "nonsense"},
		{[]string{"-lock", "x", "no-such-command"}, exitNotFound, "no-such-command"},
		{[]string{"-lock", "x", "/no/such/command"}, exitNotFound, "/no/such/command"},
		{[]string{"-lock", "x", "/dev/null"}, exitNotRun, "/dev/null"},
	} {
		t.Run(c.said, func(t *testing.T) {
			var stdout, stderr output
			code := run(append([]string{"-redis", url}, c.args...), os.Environ(), nil, &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.said) || stdout.String() != "" {
				t.Errorf("%q: exit code %d, said: %s", c.args, code, stderr.String())
			}
		})
	}
}

func manyLocks(n int) (args []string) {
	for i := range n {
		args = append(args, "-lock", strconv.Itoa(i))
	}
	return args
}

func TestHelp(t *testing.T) {
	var stdout, stderr output
	if code := run([]string{"-h"}, nil, nil, &stdout, &stderr); code != 0 || stderr.String() != "" || stdout.String() != help {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
	}
}
