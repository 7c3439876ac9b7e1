//go:build unix

package main

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSubcommands_PrintTheirHelp(t *testing.T) {
	for line, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"":                 {exitUsage, "", overview()},
		"help":             {0, overview(), ""},
		"--help":           {0, overview(), ""},
		"help run":         {0, runHelp, ""},
		"run -h":           {0, runHelp, ""},
		"help nothing":     {exitUsage, "", "lockkeeper: unknown subcommand \"nothing\"\n" + overview()},
		"nothing":          {exitUsage, "", "lockkeeper: unknown subcommand \"nothing\"\n" + overview()},
		"version extra":    {exitUsage, "", versionHelp},
		"run":              {exitUsage, "", "lockkeeper: -lock is missing\n" + runUsage + "\n"},
		"ls -h":            {0, listHelp, ""},
		"ls a b":           {exitUsage, "", "lockkeeper: \"a\" is not expected\n" + usageOf(listHelp) + "\n"},
		"ls -systems a":    {exitUsage, "", "lockkeeper: \"a\" is not expected\n" + usageOf(listHelp) + "\n"},
		"-prefix p ls a b": {exitUsage, "", "lockkeeper: \"a\" is not expected\n" + usageOf(listHelp) + "\n"},
		"--json":           {exitUsage, "", overview()},
		"inspect":          {exitUsage, "", "lockkeeper: the name of one lock is expected\n" + usageOf(inspectHelp) + "\n"},
		"inspect a b":      {exitUsage, "", "lockkeeper: the name of one lock is expected\n" + usageOf(inspectHelp) + "\n"},
		"watch -every 0":   {exitUsage, "", "lockkeeper: -every must be at least 10ms\n" + usageOf(watchHelp) + "\n"},
		"release a": {exitUsage, "", "lockkeeper: --force is missing: a holder that is alive would continue without the lock\n" +
			usageOf(releaseHelp) + "\n"},
	} {
		var stdout, stderr strings.Builder
		code := dispatch(strings.Fields(line), environment{stdout: &stdout, stderr: &stderr})
		if code != want.code || stdout.String() != want.stdout || stderr.String() != want.stderr {
			t.Errorf("%q: exit code %d\n%s%s", line, code, &stdout, &stderr)
		}
	}
	for _, name := range []string{"version", "--version", "version --json", "--json version"} {
		var stdout strings.Builder
		code := dispatch(strings.Fields(name), environment{stdout: &stdout})
		if begins := stdout.String(); code != 0 || !strings.HasPrefix(begins, "lockkeeper ") && !strings.HasPrefix(begins, `{"go":"go1`) {
			t.Errorf("%s: exit code %d: %s", name, code, &stdout)
		}
	}
}

// The help of a subcommand begins with its usage, has all of its flags, and shows no password on a command line.
func TestHelp_HasAllFlags(t *testing.T) {
	for _, c := range subcommands() {
		var stdout, stderr strings.Builder
		if code := dispatch([]string{c.name, "--help"}, environment{stdout: &stdout, stderr: &stderr}); code != 0 || stdout.String() != c.help {
			t.Errorf("%s --help: exit code %d\n%s%s", c.name, code, &stdout, &stderr)
		}
		if !strings.HasPrefix(c.help, "usage: lockkeeper "+c.name) || !strings.Contains(overview(), c.summary) {
			t.Errorf("%s: the overview does not have its summary, or its help begins otherwise: %s", c.name, c.help)
		}
		if password := regexp.MustCompile(`(?m)^  lockkeeper.*://[^ ]*@.*$`).FindString(c.help); password != "" {
			t.Errorf("%s: a password on a command line: %s", c.name, password)
		}
		usage, text, _ := strings.Cut(c.help, "\n\n")
		c.flags().VisitAll(func(f *flag.Flag) {
			if word := regexp.MustCompile(`-` + f.Name + `\b`); !word.MatchString(usage) || !word.MatchString(text) {
				t.Errorf("%s: the help lacks -%s", c.name, f.Name)
			}
		})
	}
}

// Of several variables of one name, the last variable that is not empty is used.
func TestEnvironment_LastVariableIsUsed(t *testing.T) {
	for want, args := range map[string]string{"redis://b": "-lock x true", "redis://c": "-redis redis://c -lock x true"} {
		o, err := parse(strings.Fields(args), []string{"REDIS_URL=redis://a", "REDIS_URL=redis://b", "REDIS_URL=", "REDIS=no"})
		if o.redis != want || err != nil {
			t.Errorf("%q: %s, %v", args, o.redis, err)
		}
	}
}

// Every command line is refused with an error, or has a command and locks.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"", "-h", "-lock a -- true", "-lock a -lock a -- x", "-lock= -- x", "-lock a -wait 9999999999h -- x",
		"-lock a -lock b -kind fenced -wait 0 -lease 1s -watchdog 1m -grace 0 -v -- sh -c x", "-- x", "-lock -- x", "-=x", "-lock a --"} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		switch o, err := parse(args, nil); {
		case err != nil && strings.TrimSpace(err.Error()) == "":
			t.Errorf("%q is refused without a text", args)
		case err != nil:
		case len(o.command) == 0 || !slices.Equal(o.command, args[len(args)-len(o.command):]),
			len(o.locks) == 0 || slices.Contains(o.locks, "") || !slices.Contains(kindNames(), o.kind) || o.watchdog == 0 || o.grace < 0:
			t.Errorf("%q is accepted, and read as %+v", args, o)
		}
	})
}
