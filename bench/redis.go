package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// starting makes starts sequential, so that no other server gets the port that was found.
var starting sync.Mutex

// startRedis starts a redis-server on a free port, without persistence.
func startRedis(pinned bool, more ...string) (addr string, stop func(), err error) {
	starting.Lock()
	defer starting.Unlock()
	port := highestPort + 1
	for port > highestPort {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		addr, port = l.Addr().String(), l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	cmd := command(pinned, "redis-server", append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}, more...)...)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for range 500 {
		if _, err = readUsage(addr, nil); err == nil {
			return addr, stop, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("redis-server does not answer: %w", err)
}

// command runs on the first core only if pinned, where taskset is installed.
func command(pinned bool, name string, args ...string) *exec.Cmd {
	if taskset, err := exec.LookPath("taskset"); pinned && err == nil {
		return exec.Command(taskset, append([]string{"-c", "0", name}, args...)...)
	}
	return exec.Command(name, args...)
}

// usage is the work of Redis since its start.
type usage struct {
	CPU  float64 // seconds
	Sent int     // commands that clients sent
	All  int     // those, and the commands that scripts called
}

func (u usage) since(v usage) usage { return usage{u.CPU - v.CPU, u.Sent - v.Sent, u.All - v.All} }

// highestPort leaves room for the port of a cluster's bus, 10,000 above.
const highestPort = 55_535

// readUsage reads the usage of Redis on a new connection; sends is as in candidate.
func readUsage(addr string, sends []string) (u usage, err error) {
	info, err := ask(addr, "INFO ALL")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "used_cpu_sys" || key == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64)
			u.CPU += seconds
		}
		name, isCommand := strings.CutPrefix(key, "cmdstat_")
		if !isCommand || name == "info" {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, _ := strconv.Atoi(calls)
		u.All += n
		if slices.Contains(sends, name) {
			u.Sent += n
		}
	}
	return u, nil
}

// ask sends a command with a text reply on a new connection.
func ask(addr, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	head, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	size, err := strconv.Atoi(strings.Trim(head, "$\r\n"))
	if err != nil {
		return "", errors.New(head)
	}
	text := make([]byte, size)
	_, err = io.ReadFull(r, text)
	return string(text), err
}
