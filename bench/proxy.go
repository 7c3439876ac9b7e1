package main

import (
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// delayed starts a proxy between a client and Redis that delays everything in both
// directions. The delay does not limit the throughput.
func delayed(redis string, delay time.Duration) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // stopped
			}
			server, err := net.Dial("tcp", redis)
			if err != nil {
				client.Close()
				continue
			}
			go carry(client, server, delay)
			go carry(server, client, delay)
		}
	}()
	return l.Addr().String(), func() { l.Close() }, nil
}

// packet is the result of one read, and when it is due at the other side.
type packet struct {
	due  time.Time
	data []byte
}

// carry ends when either side has closed; then it closes both.
func carry(from, to net.Conn, delay time.Duration) {
	underWay := make(chan packet, 1<<14)
	go func() {
		if err := deliver(to, underWay); err != nil {
			fail(err)
		}
		from.Close()
		for range underWay { // so that the reader ends
		}
	}()
	defer close(underWay)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		underWay <- packet{time.Now().Add(delay), slices.Clone(buffer[:n])}
	}
}

// deliver writes every packet when it is due, until there are no more or the
// other side has closed.
func deliver(to net.Conn, underWay <-chan packet) error {
	defer to.Close()
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	defer alarm.Close()
	for p := range underWay {
		if err := alarm.await(p.due); err != nil {
			return err
		}
		if _, err := to.Write(p.data); err != nil {
			return nil
		}
	}
	return nil
}

// An alarm is more exact than time.Sleep, which takes whole milliseconds in a
// program that is idle, and unlike a system call that sleeps it keeps no thread.
type alarm struct{ *os.File }

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	return alarm{os.NewFile(uintptr(fd), "timer")}, err
}

func (a alarm) await(due time.Time) error {
	left := time.Until(due)
	if left <= 0 {
		return nil
	}
	once := unix.ItimerSpec{Value: unix.NsecToTimespec(left.Nanoseconds())}
	if err := a.set(&once); err != nil {
		return err
	}
	_, err := a.Read(make([]byte, 8))
	return err
}

func (a alarm) set(once *unix.ItimerSpec) error {
	raw, err := a.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.TimerfdSettime(int(fd), 0, once, nil) })
	return errors.Join(err, failed)
}
