package redistest

import "syscall"

// SigPause pauses a process, and SigResume continues it.
const (
	SigPause  = syscall.SIGSTOP
	SigResume = syscall.SIGCONT
)

// dieWithParent makes the kernel kill the server when the test process dies
// without running its cleanups (a test timeout, a panic).
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
