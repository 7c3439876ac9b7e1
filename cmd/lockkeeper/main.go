//go:build unix

// Lockkeeper is the command of the library of that name. So far it runs commands under locks:
//
//	lockkeeper run -redis redis://127.0.0.1:6379 -lock nightly-report -wait 5s -- ./report --all
//
// `lockkeeper help` lists the subcommands, and `lockkeeper help run` has the flags of one.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// The exit codes, besides those of a command that is run. Those below 100 are from
// sysexits.h, the others are what shells use.
const (
	exitUsage       = 64  // the command line is wrong
	exitUnavailable = 69  // Redis cannot be reached, or refuses
	exitHeld        = 75  // somebody else has the lock, and the wait is over
	exitLost        = 76  // the lock was lost while the command ran
	exitNotRun      = 126 // the command cannot be run
	exitNotFound    = 127 // there is no such command
	exitSignal      = 128 // and the number of the signal that ended the command, or the wait
)

// environment is what a subcommand knows of the process around it. The writers may be
// handed to other processes: they are files, or safe for concurrent use.
type environment struct {
	variables      []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// subcommand is one thing that the program does.
type subcommand struct {
	name, summary string
	// help is what `lockkeeper help <name>` prints.
	help string
	// run gets the arguments after the name, and returns the exit code.
	run func(args []string, env environment) int
}

var subcommands = []subcommand{
	{"run", "run a command while holding a lock", runHelp, runUnderLock},
	{"version", "print the version", versionHelp, printVersion},
}

func main() {
	os.Exit(dispatch(os.Args[1:], environment{os.Environ(), os.Stdin, os.Stdout, os.Stderr}))
}

// dispatch runs the subcommand that the arguments name.
func dispatch(args []string, env environment) int {
	name, rest := "", []string(nil)
	if len(args) > 0 {
		name, rest = args[0], args[1:]
	}
	switch name {
	case "":
		fmt.Fprint(env.stderr, overview())
		return exitUsage
	case "help", "-h", "-help", "--help":
		if len(rest) == 0 {
			fmt.Fprint(env.stdout, overview())
			return 0
		}
		if c := find(rest[0]); c != nil {
			fmt.Fprint(env.stdout, c.help)
			return 0
		}
		name = rest[0]
	default:
		if c := find(name); c != nil {
			return c.run(rest, env)
		}
	}
	fmt.Fprintf(env.stderr, "lockkeeper: unknown subcommand %q\n%s", name, overview())
	return exitUsage
}

func find(name string) *subcommand {
	for i := range subcommands {
		if subcommands[i].name == name {
			return &subcommands[i]
		}
	}
	return nil
}

func overview() string {
	var b strings.Builder
	b.WriteString("usage: lockkeeper <subcommand> [flag …] [argument …]\n\n")
	for _, c := range subcommands {
		fmt.Fprintf(&b, "  %-9s%s\n", c.name, c.summary)
	}
	b.WriteString("  help     print the help of a subcommand: lockkeeper help run\n")
	return b.String()
}
