package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// driver is a process that executes requests: the one in java/, or a goDriver.
type driver struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	stderr  *rig.Log
	ended   chan struct{} // closed when the process has ended

	mu      sync.Mutex // guards what follows, and writing to stdin
	ids     int
	pending map[string]chan<- line
}

func startDriver(process *exec.Cmd) (*driver, error) {
	d := &driver{process: process, stderr: &rig.Log{}, ended: make(chan struct{}), pending: map[string]chan<- line{}}
	process.Stderr = d.stderr
	var err error
	if d.stdin, err = process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	go d.readAnswers(stdout)
	return d, nil
}

// readAnswers passes the answers to their requests, until the process ends.
func (d *driver) readAnswers(stdout io.Reader) {
	defer close(d.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		answer, err := parseLine(lines.Text())
		if err != nil {
			fmt.Fprintf(d.stderr, "not an answer: %v\n", err)
			continue
		}
		d.mu.Lock()
		if to := d.pending[answer.id]; to != nil {
			delete(d.pending, answer.id)
			to <- answer
		}
		d.mu.Unlock()
	}
	_ = d.process.Wait() // the exit code does not matter
}

// send sends a request. The answer comes on the channel, unless the process ends before.
func (d *driver) send(verb string, values ...string) <-chan line {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids++
	request := line{id: strconv.Itoa(d.ids), word: verb, values: map[string]string{}}.set(values...)
	answer := make(chan line, 1)
	d.pending[request.id] = answer
	fmt.Fprintln(d.stdin, request) // if it fails, the process has ended
	return answer
}

// kill ends the process as a crash would, and waits until it has ended.
func (d *driver) kill() {
	_ = d.process.Process.Kill() // fails only if it has ended
	<-d.ended
}

// stop lets the process end by itself, and kills it after 8 s.
func (d *driver) stop() {
	_ = d.stdin.Close()
	select {
	case <-d.ended:
	case <-time.After(8 * time.Second):
		d.kill()
	}
}
