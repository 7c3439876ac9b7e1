//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// supervise runs the command to its end, and returns its exit code. It passes signals
// on, and ends the command if the lock is lost.
func (r *runner) supervise(command *exec.Cmd, hold holding) int {
	// The terminal's Ctrl-Z would stop lockkeeper, and so the renewals, but not the command.
	signal.Notify(r.signals, syscall.SIGTSTP)
	command.SysProcAttr = attributes()
	runtime.LockOSThread() // on Linux, Pdeathsig is sent when the thread that started the process ends
	defer runtime.UnlockOSThread()
	if err := startUnignoring(command); err != nil {
		return r.cannotRun(err)
	}
	g := group(command.Process.Pid)
	r.verboseLog.Printf("runs %q", command.Args)

	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // its error is in the ProcessState
		close(ended)
	}()
	lost := hold.Context().Done()
	var graceOver <-chan time.Time
	for {
		select {
		case s := <-r.signals:
			if s == syscall.SIGTSTP {
				r.say.Print("cannot be suspended while it holds a lock")
				continue
			}
			g.signal(s.(syscall.Signal))
			r.verboseLog.Printf("passes on: %v", s)
		case <-lost:
			lost = nil
			g.signal(syscall.SIGTERM)
			graceOver = time.After(r.grace)
			r.lost(context.Cause(hold.Context()))
		case <-graceOver:
			g.signal(syscall.SIGKILL)
			r.say.Printf("the command has not ended within %v, and is killed", r.grace)
		case <-ended:
			if why := hold.Err(); why != nil {
				g.signal(syscall.SIGKILL) // remaining processes must not continue without the lock
				r.lost(why)
			}
			status := command.ProcessState.Sys().(syscall.WaitStatus)
			r.verboseLog.Printf("the command has ended: %v", command.ProcessState)
			if status.Signaled() {
				return exitSignal + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
}

// startUnignoring starts the command so that it does not ignore SIGTTOU as lockkeeper does. The command is in the
// background of the terminal: ignoring SIGTTOU, it could make the terminal raw, without Ctrl-C. A command inherits
// ignored signals, but not handlers.
func startUnignoring(command *exec.Cmd) error {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTTOU)
	defer signal.Ignore(syscall.SIGTTOU)
	return command.Start()
}

// group is the id of a process group, which is the process id of its leader.
type group int

// signal sends a signal to every process of the group, if any are left.
func (g group) signal(s syscall.Signal) {
	_ = syscall.Kill(-int(g), s)
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		_ = syscall.Kill(-int(g), syscall.SIGCONT) // a stopped process would not receive it
	}
}
