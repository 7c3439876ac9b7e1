//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSubcommands(t *testing.T) {
	for line, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"":              {exitUsage, "", overview()},
		"help":          {0, overview(), ""},
		"--help":        {0, overview(), ""},
		"help run":      {0, runHelp, ""},
		"run -h":        {0, runHelp, ""},
		"help nothing":  {exitUsage, "", "lockkeeper: unknown subcommand \"nothing\"\n" + overview()},
		"nothing":       {exitUsage, "", "lockkeeper: unknown subcommand \"nothing\"\n" + overview()},
		"version extra": {exitUsage, "", versionHelp},
		"run":           {exitUsage, "", "lockkeeper: -lock is missing\n" + runUsage + "\n"},
	} {
		var stdout, stderr strings.Builder
		code := dispatch(strings.Fields(line), environment{stdout: &stdout, stderr: &stderr})
		if code != want.code || stdout.String() != want.stdout || stderr.String() != want.stderr {
			t.Errorf("%q: exit code %d\n%s%s", line, code, &stdout, &stderr)
		}
	}
	var stdout strings.Builder
	if code := dispatch([]string{"version"}, environment{stdout: &stdout}); code != 0 || !strings.HasPrefix(stdout.String(), "lockkeeper ") {
		t.Errorf("version: exit code %d: %s", code, &stdout)
	}
}

// Of several variables of one name the last counts, and an empty one does not.
func TestRedisOfTheEnvironment(t *testing.T) {
	for want, args := range map[string]string{"redis://b": "-lock x true", "redis://c": "-redis redis://c -lock x true"} {
		o, err := parse(strings.Fields(args), []string{"REDIS_URL=redis://a", "REDIS_URL=redis://b", "REDIS_URL=", "REDIS=no"})
		if o.redis != want || err != nil {
			t.Errorf("%q: %s, %v", args, o.redis, err)
		}
	}
}

// Whatever the command line is, it is refused with words, or it says what to run under which locks.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"", "-h", "-lock a -- true", "-lock a -lock a -- x", "-lock= -- x", "-lock a -wait 9999999999h -- x",
		"-lock a -lock b -kind fenced -wait 0 -lease 1s -watchdog 1m -grace 0 -v -- sh -c x", "-- x", "-lock -- x", "-=x", "-lock a --"} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		switch o, err := parse(args, nil); {
		case err != nil && strings.TrimSpace(err.Error()) == "":
			t.Errorf("%q is refused without a word", args)
		case err != nil:
		case len(o.command) == 0 || !slices.Equal(o.command, args[len(args)-len(o.command):]),
			len(o.locks) == 0 || slices.Contains(o.locks, "") || kinds[o.kind] == nil || o.watchdog == 0 || o.grace < 0:
			t.Errorf("%q: %+v", args, o)
		}
	})
}
