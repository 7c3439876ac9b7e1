package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// startServer starts a redis-server that keeps nothing on disk. stop ends it.
func startServer() (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "redisson")
	if err != nil {
		return "", nil, err
	}
	// Nobody else should take the port before the server does; if it happens, the server says so and ends.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()

	log := &collected{}
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no", "--dir", dir)
	server.Stdout = log
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("a redis-server is needed (apt-get install redis-server), or the -redis URL of one: %w", err), os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	stop = func() {
		_ = server.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			_ = connection.Close()
			return "redis://" + listener.Addr().String(), stop, nil
		}
		select {
		case <-ended:
		default:
			if time.Since(began) < patience {
				continue
			}
		}
		stop()
		return "", nil, fmt.Errorf("redis-server does not start: %w\n%s", err, log)
	}
}
