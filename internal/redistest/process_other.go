//go:build !linux

package redistest

import "syscall"

// As macOS and the BSDs number them.
const (
	SigPause  = syscall.Signal(17)
	SigResume = syscall.Signal(19)
)

// dieWithParent has no counterpart outside Linux: a test process that dies without
// running its cleanups leaves its server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
