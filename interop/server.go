package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// startCluster starts a cluster of so many masters, without replicas. It needs redis-cli.
func startCluster(masters int) (url string, stop func(), err error) {
	var addresses []string
	var stops []func()
	stop = func() {
		for _, one := range stops {
			one()
		}
	}
	for range masters {
		url, one, err := startServer("--cluster-enabled", "yes")
		if err != nil {
			stop()
			return "", nil, err
		}
		stops, addresses = append(stops, one), append(addresses, strings.TrimPrefix(url, "redis://"))
	}
	create := append([]string{"--cluster", "create", "--cluster-yes"}, addresses...)
	if out, err := exec.Command("redis-cli", create...).CombinedOutput(); err != nil {
		stop()
		return "", nil, fmt.Errorf("redis-cli makes no cluster: %w\n%s", err, out)
	}
	return "redis-cluster://" + strings.Join(addresses, ","), stop, nil
}

// startServer starts a redis-server that keeps nothing on disk. stop ends it.
func startServer(more ...string) (url string, stop func(), err error) {
	return start(func(port, dir string) ([]string, error) {
		return append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir}, more...), nil
	})
}

// start starts a redis-server with the arguments for a port, and for a directory of its own.
func start(arguments func(port, dir string) ([]string, error)) (url string, stop func(), err error) {
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

	args, err := arguments(strconv.Itoa(port), dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	log := &collected{}
	server := exec.Command("redis-server", args...)
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
