//go:build unix && !linux

package redistest

import "syscall"

// dieWithParent has no counterpart outside Linux: a test process that dies without
// running its cleanups leaves its server behind.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
