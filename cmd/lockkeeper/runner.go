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
	// releaseTimeout is the time that Redis may take to confirm the release; after that the lock
	// is left to expire.
	releaseTimeout = 5 * time.Second
	// lostTimeout is the timeout for a lost lock, since there is nothing to confirm, and the other locks of a MultiLock
	// have been released since the loss.
	lostTimeout = 200 * time.Millisecond
)

// passedOn are the signals that are passed on to the command.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// runner runs a command under a lock.
type runner struct {
	options
	environment

	messages   *messages
	say        *log.Logger // messages that are always printed
	verboseLog *log.Logger // messages for -v
	name       string      // of the lock, or of all locks
	what       string      // description: the lock with its name, or a permit
	signals    chan os.Signal
	isLost     bool
}

func (r *runner) run() int {
	// A message that cannot be written, since its reader has gone, does not end the program, which has a lock to
	// release.
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	defer signal.Stop(unread)
	// SIGTTOU would stop lockkeeper, and so the renewals, when it writes in the background of a terminal.
	signal.Ignore(syscall.SIGTTOU)
	r.messages = newMessages(r.stderr)
	defer r.messages.end()
	r.say = log.New(sayWriter{environment{stderr: r.messages}}, "", 0)
	r.verboseLog = log.New(io.Discard, "", 0)
	if r.verbose {
		r.verboseLog = r.say
	}
	path, err := exec.LookPath(r.command[0])
	if err != nil { // checked before the lock is acquired
		return r.cannotRun(err)
	}
	command := exec.Command(path)
	command.Args = r.command
	command.Stdin, command.Stdout, command.Stderr = r.stdin, forCommand(r.stdout), r.stderr

	// The errors of Open do not contain the URL, which may have a password. The System has no logger, since
	// this program prints its own messages about the lock.
	locks, err := lockkeeper.Open(context.Background(), r.redis, lockkeeper.WithConfig(lockkeeper.Config{
		Watchdog: r.watchdog, Application: r.application(), KeyPrefix: r.prefix, Replicas: r.replicas,
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
		code := exitCode(err)
		if code == exitHeld {
			code = r.heldExit
		}
		return code
	}
	command.Env = r.withTokens(r.variables, hold)
	return r.release(hold, r.supervise(command, hold))
}

// application returns the name for the record that operators see. The name has no arguments of the command, which may
// be secret.
func (r *runner) application() string {
	name := filepath.Base(r.command[0])
	return "lockkeeper run " + strings.ToValidUTF8(name[:min(len(name), 100)], "")
}

// signalError is the error of a wait that a signal has ended.
type signalError struct{ syscall.Signal }

func (c signalError) Error() string {
	return "no longer waited for, after a signal: " + c.Signal.String()
}

// holding is a hold or a permit, under which the command runs.
type holding interface {
	Context() context.Context
	Err() error
	Release(context.Context) error
}

// acquire waits for the lock or the permit, or for a signal.
func (r *runner) acquire(ctx context.Context, cancel context.CancelCauseFunc, locks *lockkeeper.System) (holding, error) {
	take, showProgress := r.acquirer(locks)
	options := []lockkeeper.Option{lockkeeper.WithNote(r.note), lockkeeper.WithAtRisk(func(left time.Duration) {
		r.say.Printf("%s cannot be renewed at present; unless that changes it is lost in %v", r.what, left.Round(time.Millisecond))
	})}
	if r.wait != nil {
		options = append(options, lockkeeper.WithWait(*r.wait))
	}
	if r.lease != nil {
		options = append(options, lockkeeper.WithLease(*r.lease))
	}
	if r.atLeast != nil {
		options = append(options, lockkeeper.WithAtLeast(*r.atLeast))
	}
	r.verboseLog.Printf("asks for %s", r.what)
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
		cancel(signalError{s.(syscall.Signal)})
		if err := <-answered; err != nil {
			return nil, err
		}
		r.release(hold, 0) // the lock was granted just before the signal
		return nil, context.Cause(ctx)
	case err := <-answered:
		endProgress()
		if err == nil {
			r.verboseLog.Printf("has %s, after %v", r.what, time.Since(began).Round(time.Millisecond))
		}
		return hold, err
	}
}

// exitCode returns the exit code for the error of an Open or an Acquire.
func exitCode(err error) int {
	var signal signalError
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

// report prints an error, without the prefix of the library's errors.
func (r *runner) report(err error) { r.say.Print(strings.TrimPrefix(err.Error(), "lockkeeper: ")) }

// lost records that the lock is lost, and prints it once.
func (r *runner) lost(why error) {
	if !r.isLost {
		r.isLost = true
		r.report(why)
	}
}

// release releases the hold or the permit. It returns code, or exitLost if the hold or the permit was lost.
func (r *runner) release(hold holding, code int) int {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	switch err := hold.Release(ctx); {
	case err == nil && r.atLeast != nil:
		r.verboseLog.Printf("has given %s back, which stays held until -at-least is over", r.what)
	case err == nil:
		r.verboseLog.Printf("has given %s back", r.what)
	case errors.Is(err, lockkeeper.ErrLost):
		r.lost(err)
		return exitLost
	default:
		r.say.Printf("%s may stay held until its lease or -at-least is over: %v", r.what, err)
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
