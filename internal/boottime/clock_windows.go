package boottime

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// New starts a clock.
func New() Clock { return direct{start: boot()} }

var interruptTime = windows.NewLazySystemDLL("kernelbase.dll").NewProc("QueryInterruptTimePrecise")

// boot continues during sleep and hibernation. Windows 10 has the function, and Go requires Windows 10.
func boot() time.Duration {
	var ticks uint64 // of 100 ns
	_, _, _ = interruptTime.Call(uintptr(unsafe.Pointer(&ticks)))
	return time.Duration(ticks) * 100
}
