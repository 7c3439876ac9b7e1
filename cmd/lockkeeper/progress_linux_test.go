package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// terminal returns a new terminal, and a function that returns what was written to it so far.
func terminal(t *testing.T) (slave *os.File, written func() string) {
	t.Helper()
	master := must(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))
	check(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := must(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))
	slave = must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))
	check(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 200}))
	var mu sync.Mutex
	var text strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1024)
		for {
			n, err := master.Read(buffer)
			if err != nil { // the other end is closed
				return
			}
			mu.Lock()
			text.Write(buffer[:n])
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { slave.Close(); <-ended; master.Close() })
	return slave, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

// During a wait, a line on the terminal names the process of the holder, as a refusal does; it is erased when the lock is
// granted.
func TestProgressLine_IsErasedWhenGranted(t *testing.T) {
	t.Parallel()
	server, lock := redistest.Shared(t), redistest.Name(t)
	holder := under(t, server, "-lock", lock, "sh", "-c", patient)
	holder.expectLine("ready")
	cmd := program(t, "run", "-v", "-redis", server.URL(), "-lock", lock, "true")
	tty, written := terminal(t)
	cmd.Stderr = tty
	check(cmd.Start())
	redistest.Eventually(t, "the holder is shown", func() bool {
		return strings.Contains(written(), "held for at least ") && strings.Contains(written(), " by lockkeeper run sh on ") &&
			strings.Contains(written(), fmt.Sprintf(", pid %d,", holder.cmd.Process.Pid))
	})
	under(t, server, "-lock", lock, "-wait", "0", "true").expectExit(exitHeld, fmt.Sprintf(
		": lock is held: the holder is lockkeeper run sh on %s, pid %d, up since ", must(os.Hostname()), holder.cmd.Process.Pid))
	holder.stdin.Close()
	check(cmd.Wait())
	redistest.Eventually(t, "the line is erased, and then the grant is printed", func() bool {
		_, after, _ := strings.Cut(written(), ", pid ")
		return strings.Contains(after, "\r\x1b[Klockkeeper: has the lock")
	})
}

// In the background of a terminal that stops what writes to it (stty tostop), a message does not stop the program, which has
// a lock to renew.
func TestRun_IsNotStoppedByATerminal(t *testing.T) {
	t.Parallel()
	server, lock := redistest.Shared(t), redistest.Name(t)
	cmd := program(t, "run", "-redis", server.URL(), "-lock", lock, "-watchdog", "1s", "sh", "-c", "exec 2>/dev/null; "+printTerm)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `stty tostop <&2; set -m; "$@" & echo $!; cat; wait $!`, "sh"}, cmd.Args...)
	tty, written := terminal(t)
	cmd.Stderr = tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	p := start(t, cmd)
	line, _ := p.line()
	pid := must(strconv.Atoi(line))
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // a test that fails leaves no program that is stopped
	p.expectLine("ready")
	check(syscall.Kill(pid, syscall.SIGTSTP))
	redistest.Eventually(t, "a message", func() bool { return strings.Contains(written(), "cannot be suspended") })
	server.Do(t, "DEL", lock)
	p.expectLine("terminated")
	p.stdin.Close()
	p.expectExit(exitLost)
}

// The command does not ignore what lockkeeper ignores: in the background of a terminal, it could make that raw, and no Ctrl-C
// would end lockkeeper.
func TestRun_CommandIgnoresNoTerminal(t *testing.T) {
	t.Parallel()
	p := under(t, redistest.Shared(t), "-lock", redistest.Name(t), "grep", "SigIgn", "/proc/self/status")
	line, _ := p.line()
	if ignored := must(strconv.ParseUint(strings.TrimPrefix(line, "SigIgn:\t"), 16, 64)); ignored&(1<<(syscall.SIGTTOU-1)) != 0 {
		t.Errorf("the command ignores the signals %x", ignored)
	}
	p.expectExit(0)
}
