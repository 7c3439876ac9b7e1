//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"
)

const runUsage = `usage: lockkeeper run [-redis URL] [-prefix P] -lock NAME [-lock NAME …] [-kind plain]
                      [-permits N] [-wait 5s] [-lease 10s] [-at-least 50s] [-note TEXT]
                      [-watchdog 30s] [-replicas N] [-held-exit 75] [-grace 10s] [-v]
                      -- command [argument …]`

const runHelp = runUsage + `

Runs a command while it holds a lock, or several, and releases the lock when the command ends,
even by a signal. Meanwhile no other client of the same Redis can acquire a lock of that name,
unless -kind shares it: other commands under lockkeeper, Go programs with Lockkeeper, Java
programs with Redisson.

` + redisHelp + `  -prefix P      the Config.KeyPrefix of the Systems that use the lock; its name is without it
  -lock NAME     the name of the lock; may be given more than once: all of them or none are
                 held; a command that waits for one of them holds none of the others
  -kind KIND     the kind of the lock or locks:
                   plain      one holder at a time; the default
                   fenced     one holder at a time, and a token that grows with every hold, in
                              LOCK_TOKEN if it is one lock; LOCK_TOKENS has those of all, in
                              the order of -lock, separated by blanks
                   fair       one holder at a time, in order of arrival, if it is one lock
                   read       shared with other readers
                   write      no other holder, for reading or for writing
                   expirable_semaphore
                              as many holders as -permits
                 all clients must use the same kind for a name; read and write are one kind
  -permits N     for expirable_semaphore: how many commands may run at a time. The first command
                 sets the number, and later ones do not change it. If Redis loses its data,
                 the next command sets it, while others may still run. The permits expire, as
                 those of Redisson's RPermitExpirableSemaphore: the permit of a command
                 whose lockkeeper was killed is free after -watchdog. In Java, share them by
                 getPermitExpirableSemaphore, never getSemaphore: it has the same key
  -wait 5s       how long to wait for the lock; 0 tries once; without it there is no limit, so that
                 jobs of cron pile up while one hangs. Without Redis at the start, lockkeeper
                 exits with 69 within 5 to 7 s, also with a longer wait
  -lease 10s     a fixed lease instead of -watchdog: the lock is not renewed, and is lost after
                 that time
  -at-least 50s  how long the lock is held at least, also when the command has ended, but not when
                 lockkeeper was killed, or Redis does not answer at its end: with -wait 0, of
                 several machines that start it by their clocks, one runs it; not for read, write
                 and expirable_semaphore
  -note TEXT     a text that ls, inspect and watch show with the lock, such as who has started the
                 command; at most 256 bytes
  -watchdog 30s  how long the lock stays held after a crash of lockkeeper; renewed until then
  -replicas N    the Config.Replicas of the Systems that use the lock: it counts as held when N
                 replicas of Redis have it, so that a failover does not lose it; 0 without it
  -held-exit N   the exit code when the lock was not granted within the wait, instead of 75: with 0
                 a scheduler takes it for success that the command runs elsewhere
  -grace 10s     how long the command has to end when the lock is lost, before it is killed
  -v             print what happens

While it waits for a lock, not for a permit, it shows on a terminal which process holds it, and for
how long.

The command runs in a new process group, so that signals reach all of its processes; therefore
it cannot read from a terminal. lockkeeper passes signals on to it. If the lock is lost, the
command gets SIGTERM, and SIGKILL if it does not end within the grace period; then lockkeeper
exits without waiting for Redis. On Linux the command also gets SIGTERM if lockkeeper itself
is killed.

The exit code is the command's own, or 128 plus the signal that ended it, or the wait. 64: the
command line is wrong. 69: Redis cannot be reached, or refuses, or too few replicas have the lock
within the wait. 75, or -held-exit: the lock was not granted within the wait. 76: the lock was lost.
126, 127: the command cannot be run, or found.

  lockkeeper run -lock nightly-report -wait 5s -- ./report --all
  lockkeeper run -lock prices -kind read -- ./report
  lockkeeper run -lock stock -kind fenced -- sh -c './count --token "$LOCK_TOKEN"'
  lockkeeper run -lock account-17 -lock account-4 -- ./transfer
  lockkeeper run -lock encoder -kind expirable_semaphore -permits 3 -- ./encode film.mov
`

// runUnderLock runs the subcommand run.
func runUnderLock(args []string, env environment) int {
	o, err := parse(args, env.variables)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(env.stdout, runHelp)
		return 0
	case err != nil:
		env.complain(err)
		fmt.Fprintln(env.stderr, runUsage)
		return exitUsage
	}
	r := &runner{options: o, environment: env}
	return r.run()
}

// options are the command line of run. A duration that was not given is nil.
type options struct {
	redis    string
	prefix   string
	locks    []string
	kind     string
	permits  int
	wait     *time.Duration
	lease    *time.Duration
	atLeast  *time.Duration
	note     string
	watchdog time.Duration
	replicas int
	heldExit int
	grace    time.Duration
	verbose  bool
	command  []string
}

func parse(args, env []string) (options, error) {
	o := options{kind: defaultKind}
	flags := o.flags(env)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.command = flags.Args()
	switch {
	case len(o.locks) == 0:
		return o, errors.New("-lock is missing")
	case len(o.command) == 0:
		return o, errors.New("the command is missing")
	case o.kind == expirableKind && o.permits < 1:
		return o, errors.New("-kind " + expirableKind + " needs -permits: how many may run at a time, from 1")
	case o.kind != expirableKind && o.permits != 0:
		return o, errors.New("-permits is for -kind " + expirableKind)
	case o.kind == expirableKind && len(o.locks) > 1:
		return o, errors.New("-kind " + expirableKind + " takes one -lock")
	case o.watchdog == 0: // Lockkeeper would use its default for 0
		return o, errors.New("-watchdog must not be 0")
	case o.replicas < 0:
		return o, errors.New("-replicas must not be negative")
	case o.heldExit < 0 || o.heldExit > 255:
		return o, errors.New("-held-exit must be from 0 to 255")
	case o.grace < 0:
		return o, errors.New("-grace must not be negative")
	}
	return o, nil
}

func (o *options) flags(env []string) *flag.FlagSet {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // runUnderLock prints the error
	flags.StringVar(&o.redis, "redis", redisOf(env), "")
	flags.StringVar(&o.prefix, "prefix", "", "")
	flags.Func("lock", "", o.addLock)
	flags.Func("kind", "", parseKind(&o.kind))
	flags.IntVar(&o.permits, "permits", 0, "")
	flags.Func("wait", "", duration(&o.wait))
	flags.Func("lease", "", duration(&o.lease))
	flags.Func("at-least", "", duration(&o.atLeast))
	flags.StringVar(&o.note, "note", "", "")
	flags.DurationVar(&o.watchdog, "watchdog", 30*time.Second, "")
	flags.IntVar(&o.replicas, "replicas", 0, "")
	flags.IntVar(&o.heldExit, "held-exit", exitHeld, "")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "")
	flags.BoolVar(&o.verbose, "v", false, "")
	return flags
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

// duration parses an optional flag.
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
