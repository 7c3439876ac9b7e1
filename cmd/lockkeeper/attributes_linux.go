package main

import "syscall"

// attributes put the command into a process group of its own, and end it with lockkeeper:
// a kill -9 leaves nobody to renew the lock.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
