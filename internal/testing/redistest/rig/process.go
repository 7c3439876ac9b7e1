package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

const (
	// redis-server logs it when it accepts connections. Unlike an answer on the
	// port, it can only come from the process that was started.
	readyLine = "Ready to accept connections"
	takenLine = "Address already in use"
)

var errPortTaken = errors.New("port is taken")

// process is one run of redis-server.
type process struct {
	cmd  *exec.Cmd
	log  *Log
	done chan struct{} // closed when the process has ended
}

// spawn starts redis-server with the arguments, and waits until it has logged a line. The error is
// errPortTaken if another process listens on the port.
func spawn(ready string, wrap, env, args []string) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("a real redis-server is needed: install it with `apt-get install redis-server` (%w)", err)
	}
	line := append(append(wrap[:len(wrap):len(wrap)], path), args...)
	log := &Log{}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, env
	cmd.SysProcAttr = dieWithParent()

	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// For dieWithParent the thread that started the process is its parent,
		// so that thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // a killed process is what is expected
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := p.awaitReady(ready); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) awaitReady(ready string) error {
	ended := false
	inTime := Poll(Limit, func() bool {
		select {
		case <-p.done:
			ended = true
		default:
		}
		return ended || p.log.contains(ready)
	})
	switch {
	case p.log.contains(ready):
		return nil
	case !inTime:
		return fmt.Errorf("redis-server was not ready within %v\n%s", Limit, p.log)
	case p.log.contains(takenLine):
		return errPortTaken
	}
	return fmt.Errorf("redis-server ended: %v\n%s", p.cmd.ProcessState, p.log)
}

// kill ends the process, even a paused one, and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// Log collects what a process, or a logger, writes.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *Log) contains(line string) bool { return strings.Contains(l.String(), line) }
