//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever the command line and the environment are, either they are refused with words,
// and before anything is done, or they say what to run under which locks.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"", "-h", "--help", "-lock a -- true", "-lock a true", "-lock a -lock b -kind fenced -- ./transfer -x", "-lock a -lock a -- true",
		"-lock= -- true", "-lock a -kind nothing -- true", "-lock a -wait 0 -lease 10s -watchdog 1m -grace 0 -v -- sh -c x",
		"-lock a -wait 5 -- true", "-lock a -wait -5s -- true", "-lock a -watchdog 0 -- true", "-lock a -watchdog -1s -- true",
		"-lock a -grace -1ns -- true", "-lock a -wait 9999999999h -- true", "-lock a -lease 1e9s -- true", "-lock a -v=maybe -- true",
		"-redis redis://h:1/2 -lock a -- true", "-redis", "-lock", "-- true", "- -lock a", "-lock -- true", "-=x", "---lock a", "-lock a --",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"), "PATH=/bin\x00REDIS_URL=redis://env:1")
	}
	f.Add("-lock\x00a b\x00-kind\x00read\x00--\x00true\x00", "REDIS_URL=redis://first\x00REDIS_URL=\x00REDIS_URL")
	f.Fuzz(func(t *testing.T, line, environment string) {
		args, env := strings.Split(line, "\x00"), strings.Split(environment, "\x00")
		o, err := parse(slices.Clone(args), slices.Clone(env))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Errorf("%q is refused without a word", args)
			}
			var stdout, stderr bytes.Buffer
			code := run(args, env, strings.NewReader(""), &stdout, &stderr)
			asked := errors.Is(err, flag.ErrHelp)
			if asked && (code != 0 || stdout.String() != help || stderr.Len() > 0) ||
				!asked && (code != exitUsage || !strings.Contains(stderr.String(), usage) || stdout.Len() > 0) {
				t.Errorf("%q: exit code %d\n%s%s", args, code, &stdout, &stderr)
			}
			return
		}
		for i, name := range o.locks {
			if name == "" || slices.Contains(o.locks[:i], name) || !strings.Contains(line, name) {
				t.Errorf("%q: lock %q", args, name)
			}
		}
		if n := len(o.command); n == 0 || n > len(args) || !slices.Equal(o.command, args[len(args)-n:]) {
			t.Errorf("%q: runs %q", args, o.command)
		}
		if len(o.locks) == 0 || kinds[o.kind] == nil || o.watchdog == 0 || o.grace < 0 {
			t.Errorf("%q: %+v", args, o)
		}
		flags := args[:len(args)-len(o.command)]
		for name, d := range map[string]*time.Duration{"wait": o.wait, "lease": o.lease} {
			given := slices.ContainsFunc(flags, func(arg string) bool { return strings.Contains(arg, name) })
			if d != nil && !given {
				t.Errorf("%q: %s is %v", args, name, *d)
			}
		}
		known := []string{"redis://127.0.0.1:6379"}
		for _, variable := range env {
			if url, ok := strings.CutPrefix(variable, "REDIS_URL="); ok && url != "" {
				known = []string{url} // the last of them
			}
		}
		if !slices.Contains(known, o.redis) && !strings.Contains(strings.Join(flags, " "), "redis") {
			t.Errorf("%q, %q: connects to %q", args, env, o.redis)
		}
	})
}
