//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

const (
	// releaseTimeout is how long Redis may take to confirm that the lock is free, before
	// it is left to expire.
	releaseTimeout = 5 * time.Second
	// lostTimeout is for a lock that was lost: there is nothing to confirm, and others of
	// several locks have been on their way back since the loss.
	lostTimeout = 200 * time.Millisecond
)

// passedOn are the signals that the command is sent when lockkeeper is.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// runner is one run of a command under a lock, once its command line is known to be right.
type runner struct {
	options
	environment

	say     *log.Logger // what must be said
	tell    *log.Logger // what -v wants to know
	name    string      // of the lock, or of all locks
	what    string      // is held: the lock with its name, or a permit
	signals chan os.Signal
	isLost  bool
}

func (r *runner) run() int {
	r.say = log.New(said{r.environment}, "", 0)
	r.tell = log.New(io.Discard, "", 0)
	if r.verbose {
		r.tell = r.say
	}
	path, err := exec.LookPath(r.command[0])
	if err != nil { // better known before anybody is kept out for it
		return r.cannotRun(err)
	}
	command := exec.Command(path)
	command.Args = r.command
	command.Stdin, command.Stdout, command.Stderr = r.stdin, forCommand(r.stdout), r.stderr

	// Its errors do not show the URL, and so no password. It logs nothing: this program has words
	// of its own for what happens to its lock.
	locks, err := lockkeeper.Open(context.Background(), r.redis, lockkeeper.WithConfig(lockkeeper.Config{
		Watchdog: r.watchdog, Application: r.application(), KeyPrefix: r.prefix,
	}))
	if err != nil {
		r.report(err)
		return exitCode(err)
	}
	defer func() {
		timeout := releaseTimeout
		if r.isLost {
			timeout = lostTimeout
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := locks.Close(ctx); err != nil && !r.isLost {
			r.report(err)
		}
	}()

	r.signals = make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(r.signals, s)
		}
	}
	defer signal.Stop(r.signals)

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	hold, err := r.acquire(ctx, cancel, locks)
	if err != nil {
		r.report(err)
		return exitCode(err)
	}
	command.Env = r.withTokens(r.variables, hold)
	return r.release(hold, r.supervise(command, hold))
}

// application names the command in the record that operators see: not its arguments, which may be
// secret.
func (r *runner) application() string {
	name := filepath.Base(r.command[0])
	return "lockkeeper run " + strings.ToValidUTF8(name[:min(len(name), 100)], "")
}

// caught is why a wait ends when a signal comes.
type caught struct{ syscall.Signal }

func (c caught) Error() string { return "no longer waited for, after a signal: " + c.Signal.String() }

// holding is what the command runs under: a hold, or a permit.
type holding interface {
	Context() context.Context
	Err() error
	Release(context.Context) error
}

// acquire waits for the lock or the permit, or for a signal.
func (r *runner) acquire(ctx context.Context, cancel context.CancelCauseFunc, locks *lockkeeper.System) (holding, error) {
	take, showProgress := r.asked(locks)
	options := []lockkeeper.Option{lockkeeper.WithAtRisk(func(left time.Duration) {
		r.say.Printf("%s cannot be renewed at present; unless that changes it is lost in %v", r.what, left.Round(time.Millisecond))
	})}
	if r.wait != nil {
		options = append(options, lockkeeper.WithWait(*r.wait))
	}
	if r.lease != nil {
		options = append(options, lockkeeper.WithLease(*r.lease))
	}
	r.tell.Printf("asks for %s", r.what)
	began := time.Now()
	var hold holding
	answered := make(chan error, 1)
	go func() {
		var err error
		hold, err = take(ctx, options)
		answered <- err
	}()
	endProgress := showProgress()
	select {
	case s := <-r.signals:
		endProgress()
		cancel(caught{s.(syscall.Signal)})
		if err := <-answered; err != nil {
			return nil, err
		}
		r.release(hold, 0) // it was granted at the same moment
		return nil, context.Cause(ctx)
	case err := <-answered:
		endProgress()
		if err == nil {
			r.tell.Printf("has %s, after %v", r.what, time.Since(began).Round(time.Millisecond))
		}
		return hold, err
	}
}

// exitCode is for an Open or an Acquire that failed.
func exitCode(err error) int {
	var signal caught
	switch {
	case errors.As(err, &signal):
		return exitSignal + int(signal.Signal)
	case errors.Is(err, lockkeeper.ErrHeld), errors.Is(err, lockkeeper.ErrTimeout):
		return exitHeld
	case errors.Is(err, lockkeeper.ErrInvalid):
		return exitUsage
	}
	return exitUnavailable
}

// report prints an error. Those of the library begin as what is printed does.
func (r *runner) report(err error) { r.say.Print(strings.TrimPrefix(err.Error(), "lockkeeper: ")) }

// lost takes note that the lock is lost, and says so once.
func (r *runner) lost(why error) {
	if !r.isLost {
		r.isLost = true
		r.report(why)
	}
}

// release gives back what is held. It passes on the exit code, unless that was lost.
func (r *runner) release(hold holding, code int) int {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	switch err := hold.Release(ctx); {
	case err == nil:
		r.tell.Printf("has given %s back", r.what)
	case errors.Is(err, lockkeeper.ErrLost):
		r.lost(err)
		return exitLost
	default:
		r.say.Printf("%s may stay held for up to %v: %v", r.what, r.watchdog, err)
	}
	return code
}

func (r *runner) cannotRun(err error) int {
	r.report(err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitNotRun
}
