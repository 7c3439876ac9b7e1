//go:build unix && !linux

package main

import "syscall"

// attributes put the command into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
