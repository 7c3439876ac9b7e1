package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// startCluster starts a cluster of masters without replicas. It needs redis-cli.
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
		return "", nil, fmt.Errorf("redis-cli cannot create a cluster: %w\n%s", err, out)
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
	address, port, err := freePort()
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	args, err := arguments(port, dir)
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
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
			return "redis://" + address, stop, nil
		}
		select {
		case <-ended:
		default:
			if time.Since(began) < timeout {
				continue
			}
		}
		stop()
		return "", nil, fmt.Errorf("redis-server does not start: %w\n%s", err, log)
	}
}

// freePort finds a port on which nothing listens. It is below those that the kernel gives to connections, which
// could take it before the server does; and the port of a cluster's bus is 10000 above.
func freePort() (address, port string, err error) {
	for range 100 {
		port = strconv.Itoa(10000 + rand.IntN(20000))
		address = net.JoinHostPort("127.0.0.1", port)
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, port, listener.Close()
		}
	}
	return "", "", errors.New("no free port found")
}
