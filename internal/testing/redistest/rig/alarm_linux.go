package rig

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits until a time. It is more exact than time.After, which takes whole milliseconds in a
// program that is idle, and unlike a system call that sleeps it keeps no thread.
type alarm struct{ timer *os.File }

// await waits until a time, and returns false if done is closed before.
func (a *alarm) await(due time.Time, done <-chan struct{}) bool {
	const exact = 2 * time.Millisecond
	if left := time.Until(due) - exact; left > 0 {
		select {
		case <-time.After(left):
		case <-done:
			return false
		}
	}
	if left := time.Until(due); left > 0 && !a.sleep(left) {
		time.Sleep(left)
	}
	return true
}

func (a *alarm) sleep(left time.Duration) (ok bool) {
	if a.timer == nil {
		fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
		if err != nil {
			return false
		}
		a.timer = os.NewFile(uintptr(fd), "timer")
	}
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return false
	}
	once := unix.ItimerSpec{Value: unix.NsecToTimespec(left.Nanoseconds())}
	if err := raw.Control(func(fd uintptr) { ok = unix.TimerfdSettime(int(fd), 0, &once, nil) == nil }); err != nil || !ok {
		return false
	}
	_, err = a.timer.Read(make([]byte, 8))
	return err == nil
}

func (a *alarm) close() {
	if a.timer != nil {
		a.timer.Close()
	}
}
