package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

// errMissing is what a machine without Redis is told.
var errMissing = errors.New("there is no redis-server on the PATH, and the Redis inside the other examples cannot tell how long it has run: " +
	"install Redis (make redis), or name 3 or 5 independent servers of yours, each with its own -redis")

// server is one of several that know nothing of each other.
type server struct {
	url     string
	process *exec.Cmd // nil if it is not ours
	dir     string
}

// startServers starts servers on free ports that keep nothing on disk.
func startServers(n int) (servers []*server, err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errMissing
	}
	for range n {
		s, err := startServer(program)
		if err != nil {
			stopServers(servers)
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

func startServer(program string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redlock")
	if err != nil {
		return nil, err
	}
	process := exec.Command(program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--dir", dir)
	if err := process.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &server{url: fmt.Sprintf("redis://127.0.0.1:%d", port), process: process, dir: dir}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// kill ends a server that is ours, with all that it knows.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait() // it says that it was killed
		_ = os.RemoveAll(s.dir)
		s.process = nil
	}
}

func stopServers(servers []*server) {
	for _, s := range servers {
		s.kill()
	}
}
