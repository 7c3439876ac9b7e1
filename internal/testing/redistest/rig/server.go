package rig

import (
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
)

// Host is the address of all servers and proxies.
const Host = "127.0.0.1"

// Options are the options of a server.
type Options struct {
	// Args are further options of redis-server, e.g. "--requirepass", "secret".
	Args []string
	// PortOption is the option with the port; "port" if empty.
	PortOption string
	// Wrap is a command that runs redis-server, e.g. taskset; none if empty.
	Wrap []string
	// Env returns the environment of the process for its folder, at each start; nil for the environment of the parent.
	Env func(dir string) ([]string, error)
}

// Server is a redis-server, or a Sentinel, on a port of its own.
type Server struct {
	options Options
	ready   string // the line that it logs when it is ready
	args    []string
	dir     string
	port    int
	// front is the proxy before it, whose address it announces; nil if there is none.
	front *Proxy

	mu      sync.Mutex // guards what follows
	proc    *process   // nil while the server is not running
	stopped bool
}

// Start starts a redis-server on a free port that keeps nothing on disk, and waits until it answers.
func Start(o Options) (*Server, error) {
	return start(o, nil)
}

// start starts a server; announce returns further options for its port.
func start(o Options, announce func(port int) []string) (*Server, error) {
	option := cmp.Or(o.PortOption, "port")
	return launch(readyLine, o, func(port int, dir string) ([]string, error) {
		args := []string{
			"--bind", Host, "--" + option, strconv.Itoa(port), "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no",
			"--repl-diskless-sync-delay", "0", // otherwise it waits 5 s for more replicas
		}
		if announce != nil {
			args = append(args, announce(port)...)
		}
		return append(args, o.Args...), nil
	})
}

// launch starts a redis-server with the arguments for a port and a folder.
func launch(ready string, o Options, arguments func(port int, dir string) ([]string, error)) (*Server, error) {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, ready: ready, dir: dir}
	if err := onFreePort(func(port int) (err error) {
		s.port = port
		if s.args, err = arguments(port, dir); err == nil {
			err = s.run()
		}
		return err
	}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// run starts the process, with further arguments.
func (s *Server) run(more ...string) (err error) {
	var env []string
	if s.options.Env != nil {
		if env, err = s.options.Env(s.dir); err != nil {
			return err
		}
	}
	s.proc, err = spawn(s.ready, s.options.Wrap, env, slices.Concat(s.args, more))
	return err
}

// Addr is the host:port of the server, or of the proxy before it.
func (s *Server) Addr() string {
	if s.front != nil {
		return s.front.Addr()
	}
	return net.JoinHostPort(Host, strconv.Itoa(s.port))
}

// Port is the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr())
	return port
}

// URL is the server's address as redis://host:port, without a password.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dir is its folder.
func (s *Server) Dir() string { return s.dir }

// Do runs a command as the function Do does.
func (s *Server) Do(args ...string) (Value, error) { return Do(s.Addr(), args...) }

// PID is the process; 0 while the server is not running.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// Kill kills the server (SIGKILL), paused or not, and waits until it has ended. Its data is lost, and its configuration
// in a cluster is not.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
	if s.front != nil {
		s.front.Cut()
	}
}

// Restart kills the server, if it still runs, and starts it again, empty, on the same port, with further arguments for
// this start.
func (s *Server) Restart(more ...string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("the server was stopped")
	}
	s.kill()
	Poll(Limit, func() bool { // its port may be in use for another moment
		err = s.run(more...)
		return !errors.Is(err, errPortTaken)
	})
	return err
}

// Signal sends the server a signal, e.g. SigPause and SigResume.
func (s *Server) Signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errors.New("the server does not run")
	}
	return s.proc.cmd.Process.Signal(sig)
}

// Stop ends the server, paused or not, for good, with the proxy before it. It may be called repeatedly.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	s.kill()
	if s.front != nil {
		s.front.Close()
	}
	_ = os.RemoveAll(s.dir) // at worst, an empty folder is left
}
