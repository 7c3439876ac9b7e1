package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// SpecVariable is the environment variable with the traffic.Spec of a client process.
const SpecVariable = "ROBUSTNESS_CLIENT"

// client is a client process, with its proxy.
type client struct {
	proc  int
	proxy *rig.Proxy
	// others are the proxies of the other servers, if there are several.
	others []*rig.Proxy
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string   // its output; closed when it has ended
	done   chan struct{} // closed when it has ended
}

func (c *client) proxies() []*rig.Proxy { return append([]*rig.Proxy{c.proxy}, c.others...) }

// startClient starts a client process of a binary and waits until it is ready.
func startClient(binary string, spec traffic.Spec, proxy *rig.Proxy) (*client, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	c := &client{proc: spec.Proc, proxy: proxy, cmd: exec.Command(binary), lines: make(chan string, 16), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), SpecVariable+"="+string(text))
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // so that the thread that started the process lives as long
		defer runtime.UnlockOSThread()
		defer close(c.done)
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
		close(c.lines)
		_ = c.cmd.Wait() // the exit code does not matter
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, c.expect(traffic.Ready, limit)
}

// order sends a command to the client. If the client has ended, End reports that.
func (c *client) order(words ...any) error {
	_, err := fmt.Fprintln(c.in, words...)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

var (
	errNoAnswer = errors.New("the client does not answer")
	errEnded    = errors.New("the client has ended")
)

// readLine waits for a line.
func (c *client) readLine(wait time.Duration) (string, error) {
	select {
	case line, more := <-c.lines:
		if !more {
			return "", fmt.Errorf("client %d: %w", c.proc, errEnded)
		}
		return line, nil
	case <-time.After(wait):
		return "", errNoAnswer
	}
}

func (c *client) expect(what string, wait time.Duration) error {
	line, err := c.readLine(wait)
	if err == nil && line != what {
		err = fmt.Errorf("client %d wrote %q instead of %q", c.proc, line, what)
	}
	return err
}

// signal sends a signal; like order it succeeds if the client has ended.
func (c *client) signal(sig os.Signal) error {
	err := c.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// kill kills the client, paused or not, and waits until it has ended.
func (c *client) kill() {
	_ = c.cmd.Process.Kill() // fails only if it has ended already
	<-c.done
}
