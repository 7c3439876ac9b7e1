//go:build unix && !linux

package main

import "syscall"

// attributes put the command into a new process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
