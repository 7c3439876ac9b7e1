//go:build !linux

package rig

import "syscall"

// As macOS and the BSDs number them.
const (
	SigPause  = syscall.Signal(17)
	SigResume = syscall.Signal(19)
)

// dieWithParent has no counterpart outside Linux: a parent that dies without
// stopping its server leaves it behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
