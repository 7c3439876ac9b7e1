//go:build unix

// Lockkeeper is the command of the library Lockkeeper. It runs commands under locks, and shows operators which process
// holds a lock:
//
//	lockkeeper run -redis redis://127.0.0.1:6379 -lock nightly-report -wait 5s -- ./report --all
//	lockkeeper inspect nightly-report
//
// `lockkeeper help` lists the subcommands, and `lockkeeper help run` lists the flags of run.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// The exit codes, besides the exit codes of a command that is run. Codes below 100 are from sysexits.h; shells use the
// others.
const (
	exitNo          = 1   // the lock is free (inspect, release), something must be changed (doctor), or the output cannot be written
	exitUsage       = 64  // the command line is wrong
	exitUnavailable = 69  // Redis cannot be reached, or refuses
	exitHeld        = 75  // another owner holds the lock, and the wait has ended
	exitLost        = 76  // the lock was lost while the command ran
	exitNotRun      = 126 // the command cannot be run
	exitNotFound    = 127 // there is no such command
	exitSignal      = 128 // and the number of the signal that ended the command, or the wait
)

// environment is the environment of a subcommand. The writers may be passed to other
// processes: they are files, or safe for concurrent use.
type environment struct {
	variables      []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// subcommand is a subcommand of the program.
type subcommand struct {
	name, summary string
	// help is the text that `lockkeeper help <name>` prints.
	help string
	// flags returns the flags of the command line, for completion.
	flags func() *flag.FlagSet
	// run gets the arguments after the name, and returns the exit code.
	run func(args []string, env environment) int
}

func subcommands() []subcommand {
	return []subcommand{
		{"run", "run a command while holding a lock", runHelp, func() *flag.FlagSet { return new(options).flags(nil) }, runUnderLock},
		{"ls", "list the locks that are held, and their holders", listHelp, new(listOptions).flags, list},
		{"inspect", "show which process holds a lock", inspectHelp, func() *flag.FlagSet { return new(access).flags("inspect") }, runInspect},
		{"watch", "print the holders of locks whenever they change", watchHelp, new(watchOptions).flags, watch},
		{"release", "free a lock whose process is dead", releaseHelp, new(releaseOptions).flags, release},
		{"doctor", "check whether this Redis is suitable for locks, and print what to change", doctorHelp, new(doctor).flags, examine},
		{"bench", "measure locks against this Redis", benchHelp, new(benchOptions).flags, bench},
		{"completion", "print the completion of the command line for a shell", completionHelp, noFlags, complete},
		{"version", "print the version", versionHelp, new(versionOptions).flags, printVersion},
	}
}

func noFlags() *flag.FlagSet { return flag.NewFlagSet("", flag.ContinueOnError) }

func main() {
	os.Exit(dispatch(os.Args[1:], environment{os.Environ(), os.Stdin, os.Stdout, os.Stderr}))
}

// dispatch runs the subcommand that the arguments name, and returns its exit code. If the output cannot be
// written, it prints an error and returns 1.
func dispatch(args []string, env environment) int {
	out := &output{to: env.stdout}
	env.stdout = out
	code := route(args, env)
	if out.err != nil {
		env.complain(fmt.Errorf("%w: %w", errOutput, out.err))
		return exitNo
	}
	return code
}

func route(args []string, env environment) int {
	common, args := commonFlags(args)
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
	case "-version", "--version":
		return printVersion(rest, env)
	default:
		if c := find(name); c != nil {
			return c.run(slices.Concat(common, rest), env)
		}
	}
	env.complain(fmt.Errorf("unknown subcommand %q", name))
	fmt.Fprint(env.stderr, overview())
	return exitUsage
}

// commonFlags splits off the flags before the subcommand: the flags of an access may also come before it.
func commonFlags(args []string) (common, rest []string) {
	flags := new(access).flags("")
	if err := flags.Parse(args); err != nil {
		return nil, args // for example, --help
	}
	common = args[:len(args)-flags.NArg()]
	return common, flags.Args()
}

func find(name string) *subcommand {
	for _, c := range subcommands() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

func overview() string {
	var b strings.Builder
	b.WriteString("usage: lockkeeper <subcommand> [flag …] [argument …]\n\n")
	for _, c := range subcommands() {
		fmt.Fprintf(&b, "  %-11s%s\n", c.name, c.summary)
	}
	b.WriteString("  help       print the help of a subcommand: lockkeeper help run\n\n")
	b.WriteString("-redis URL, -prefix P and --json (not for run) may also stand before the subcommand.\n" +
		"If the output cannot be written, the exit code is 1.\n")
	return b.String()
}
