package boottime

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// New starts a clock.
func New() Clock { return direct{start: boot()} }

var interruptTime = windows.NewLazySystemDLL("kernelbase.dll").NewProc("QueryInterruptTimePrecise")

// boot goes on during sleep and hibernation. Windows 10 has it, and Go runs on nothing older.
func boot() time.Duration {
	var ticks uint64 // of 100 ns
	_, _, _ = interruptTime.Call(uintptr(unsafe.Pointer(&ticks)))
	return time.Duration(ticks) * 100
}
