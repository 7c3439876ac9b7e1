package redistest

import "syscall"

const (
	sigPause  = syscall.SIGSTOP
	sigResume = syscall.SIGCONT
)

// dieWithParent makes the kernel kill the server when the test process dies
// without running its cleanups (a test timeout, a panic).
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
