package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	host = "127.0.0.1"
	// limit bounds short operations, even on a busy machine.
	limit = 20 * time.Second
)

// server is one run of redis-server, which keeps nothing on disk.
type server struct {
	addr  string
	dir   string
	clock clock
	args  []string
	ready string // what it logs when it is ready
	cmd   *exec.Cmd
	done  chan struct{}
	// front is the proxy before it, whose address it announces, and bus the port of its cluster bus;
	// nil and empty without replicas.
	front *Proxy
	bus   string
}

var errTaken = errors.New("the port is taken")

// startServer starts a redis-server on a free port.
func startServer(clock clock, options ...string) (*server, error) {
	return onFreePort(func(addr string) (*server, error) { return startServerOn(addr, clock, options...) })
}

// onFreePort starts a server on a free port.
func onFreePort(start func(addr string) (*server, error)) (s *server, err error) {
	for range 10 {
		// Below the ports that the kernel gives to connections; that of a cluster's bus is 10000 above.
		port := 10000 + rand.IntN(20000)
		if s, err = start(net.JoinHostPort(host, strconv.Itoa(port))); !errors.Is(err, errTaken) {
			return s, err
		}
	}
	return nil, err
}

// startBehind starts a redis-server behind a proxy that delays its replicas by lag.
func startBehind(lag time.Duration, options ...string) (*server, error) {
	front, err := newProxy("", 0)
	if err != nil {
		return nil, err
	}
	front.set(func(r *rules) { r.stream.delay = lag })
	_, port, _ := net.SplitHostPort(front.Addr())
	var bus string
	s, err := onFreePort(func(addr string) (*server, error) {
		_, own, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(own)
		bus = strconv.Itoa(n + 10000)
		return startServerOn(addr, clock{}, append([]string{"--replica-announce-ip", host, "--replica-announce-port", port,
			"--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-announce-bus-port", bus}, options...)...)
	})
	if err != nil {
		front.close()
		return nil, err
	}
	front.redirect(s.addr)
	s.addr, s.front, s.bus = front.Addr(), front, bus
	return s, nil
}

// startServerOn starts a redis-server on an address, and waits until it is ready.
func startServerOn(addr string, clock clock, options ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "robustness-redis")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	s := &server{addr: addr, dir: dir, clock: clock, ready: "Ready to accept connections"}
	s.args = append([]string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no",
		"--dir", dir, "--busy-reply-threshold", "50", "--repl-diskless-sync-delay", "0", "--enable-protected-configs", "yes"}, options...)
	if err := s.run(); err != nil {
		return nil, err
	}
	return s, nil
}

// run starts the process of a server, also after a crash, and waits until it is ready. If that
// fails, it kills the server and removes its directory.
func (s *server) run(more ...string) error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.done = make(chan struct{})
	s.cmd = exec.Command("redis-server", append(slices.Clone(s.args), more...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if s.cmd.Env, err = s.clock.into(s.dir); err != nil {
		return err
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// For Pdeathsig the thread that starts it is its parent, so it must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // a killed server is what is expected
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("the suite needs a redis-server on PATH: %w", err)
	}
	if err := s.awaitReady(log.Name()); err != nil {
		s.kill()
		return err
	}
	return nil
}

// awaitReady waits for the process's own log line, since another process might answer on the port.
func (s *server) awaitReady(log string) error {
	for end := time.Now().Add(limit); ; time.Sleep(3 * time.Millisecond) {
		text, err := os.ReadFile(log)
		ended := false
		select {
		case <-s.done:
			ended = true
		default:
		}
		switch {
		case err != nil:
			return err
		case strings.Contains(string(text), s.ready):
			return nil
		case strings.Contains(string(text), "Address already in use"):
			return errTaken
		case ended, time.Now().After(end):
			return fmt.Errorf("redis-server does not start:\n%s", text)
		}
	}
}

// crash kills the server, paused or not. Its data and its replies under way are lost; its cluster
// configuration is not.
func (s *server) crash() {
	_ = s.cmd.Process.Kill() // fails only if it has ended already
	<-s.done
	if s.front != nil {
		s.front.cut()
	}
	s.clock.remove(s.cmd.Process.Pid)
}

// kill kills the server and removes its directory.
func (s *server) kill() {
	s.crash()
	if s.front != nil {
		s.front.close()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *server) signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// list returns the names that a command lists, without permanent ones: the token counters, the
// memory record of a RedLock, the records of Systems, and turn channels.
func (s *server) list(args ...string) (names []string, err error) {
	lines, err := s.do(args...)
	for i := 2; i < len(lines); i += 2 {
		if !strings.HasPrefix(lines[i], "redisson_lock_token:") && lines[i] != "lockkeeper_memory" && !strings.HasPrefix(lines[i], "{lockkeeper_systems}") &&
			!strings.HasPrefix(lines[i], "lockkeeper_turn:") {
			names = append(names, lines[i])
		}
	}
	return names, err
}

// do runs a command, and returns the lines of the reply.
func (s *server) do(args ...string) ([]string, error) { return redis(s.addr, limit, args...) }
