package main

import "syscall"

// attributes put the command into a new process group, and end it with lockkeeper: after a
// kill -9 of lockkeeper the lock is not renewed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
