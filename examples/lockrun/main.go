//go:build unix

// Lockrun runs a command while it holds a lock:
//
//	lockrun -redis redis://127.0.0.1:6379 -lock nightly-report -wait 5s -- ./report --all
//
// The lock is given back when the command ends, however it ends. Whoever uses the
// same name on the same Redis is kept out meanwhile: other lockruns, Go programs with
// Lockkeeper, Java programs with Redisson's RLock.
//
// With -kind it is a lock of another kind: commands that only read run beside each other
//
//	lockrun -lock prices -kind read -- ./report
//	lockrun -lock prices -kind write -- ./import
//
// those who wait for a fair lock get it in the order in which they came, and a fenced lock
// gives the command a token, which is higher with every hold; a store that refuses
// tokens lower than the highest it has seen is safe from a command that is late:
//
//	lockrun -lock stock -kind fenced -- sh -c './count --token "$LOCK_TOKEN"'
//
// With more than one -lock the command runs when it has all of them, and nobody is kept
// out of one while another is waited for:
//
//	lockrun -lock account-17 -lock account-4 -kind fenced -- ./transfer
//
// The command gets a process group of its own, so that signals reach all of it;
// hence it cannot read from a terminal. Signals that lockrun is sent are passed on.
// If the lock is lost, the command is told by SIGTERM, and killed if it does not end
// within the grace period; lockrun leaves then, without waiting for Redis. On Linux it
// also gets SIGTERM if lockrun itself is killed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// The exit codes, besides the command's own. Those below 100 are from sysexits.h,
// the others are what shells use.
const (
	exitUsage       = 64  // the command line is wrong
	exitUnavailable = 69  // Redis cannot be reached, or refuses
	exitHeld        = 75  // somebody else has the lock, and the wait is over
	exitLost        = 76  // the lock was lost while the command ran
	exitNotRun      = 126 // the command cannot be run
	exitNotFound    = 127 // there is no such command
	exitSignal      = 128 // and the number of the signal that ended the command, or the wait
)

const usage = `usage: lockrun [-redis URL] -lock NAME [-lock NAME …] [-kind reentrant] [-wait 5s] [-lease 10s] [-watchdog 30s] [-grace 10s] [-v] -- command [argument …]`

const help = usage + `

Runs a command while it holds a lock, or several, and gives it back when the command ends.

  -redis URL     redis[s]://[user[:password]@]host[:port][/database]; without it
                 the environment's REDIS_URL, else redis://127.0.0.1:6379
  -lock NAME     the name of the lock; may be given more than once: all of them or none are
                 held, and while one is waited for nobody is kept out of the others
  -kind KIND     what kind of lock that is, or those are:
                   reentrant  one holder at a time; the default
                   fenced     and the command has a token that grows with every hold, in
                              LOCK_TOKEN; in LOCK_TOKENS those of all locks, in the order
                              of -lock, with blanks between them
                   fair       one holder at a time, in the order in which they came
                   read       beside others that read
                   write      nobody beside, be it to read or to write
                 whoever shares a name must use the same kind; read and write are one
  -wait 5s       how long to wait for the lock; 0 tries once; without it there is no limit
  -lease 10s     hold the lock for that long at most: it is lost then, and not renewed
  -watchdog 30s  how long the lock stays held after a crash of lockrun; renewed until then
  -grace 10s     how long the command has to end when the lock is lost, before it is killed
  -v             say what happens

The exit code is the command's own, or 128 and the signal that ended it. 64: the
command line is wrong. 69: Redis cannot be reached, or refuses. 75: the lock was not
to be had within the wait. 76: the lock was lost. 126, 127: the command cannot be run,
or found.
`

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it. The writers are the command's, too: files,
// or safe for use by several goroutines.
func run(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "lockrun: %v\n%s\n", err, usage)
		return exitUsage
	}
	r := &runner{options: o, stdin: stdin, stdout: stdout, stderr: stderr, env: env}
	return r.run()
}

// options are the command line. A duration that was not given is nil.
type options struct {
	redis    string
	locks    []string
	kind     string
	wait     *time.Duration
	lease    *time.Duration
	watchdog time.Duration
	grace    time.Duration
	verbose  bool
	command  []string
}

func parse(args, env []string) (options, error) {
	o := options{redis: "redis://127.0.0.1:6379", kind: defaultKind}
	for _, variable := range slices.Backward(env) { // the last of a name is the one that counts
		if url, ok := strings.CutPrefix(variable, "REDIS_URL="); ok && url != "" {
			o.redis = url
			break
		}
	}
	flags := flag.NewFlagSet("lockrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run says what is wrong
	flags.StringVar(&o.redis, "redis", o.redis, "")
	flags.Func("lock", "", o.addLock)
	flags.Func("kind", "", parseKind(&o.kind))
	flags.Func("wait", "", duration(&o.wait))
	flags.Func("lease", "", duration(&o.lease))
	flags.DurationVar(&o.watchdog, "watchdog", 30*time.Second, "")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "")
	flags.BoolVar(&o.verbose, "v", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.command = flags.Args()
	switch {
	case len(o.locks) == 0:
		return o, errors.New("-lock is missing")
	case len(o.command) == 0:
		return o, errors.New("the command is missing")
	case o.watchdog == 0: // which Lockkeeper would take for its default
		return o, errors.New("-watchdog must not be 0")
	case o.grace < 0:
		return o, errors.New("-grace must not be negative")
	}
	return o, nil
}

// addLock adds one more lock to hold.
func (o *options) addLock(name string) error {
	switch {
	case name == "":
		return errors.New("a name is expected")
	case slices.Contains(o.locks, name):
		return errors.New("it is named twice")
	}
	o.locks = append(o.locks, name)
	return nil
}

// duration parses a flag that may be left out.
func duration(to **time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("a duration is expected, such as 300ms, 5s or 1h30m")
		}
		*to = &d
		return nil
	}
}
