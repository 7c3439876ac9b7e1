package rig

import "syscall"

// SigPause pauses a process, and SigResume continues it.
const (
	SigPause  = syscall.SIGSTOP
	SigResume = syscall.SIGCONT
)

// dieWithParent makes the kernel kill the server when its parent dies
// without stopping it (the timeout of a test, a panic).
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
