//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// say prints a line on the standard error. Hidden characters in names and in texts of Redis are escaped.
func (e environment) say(line string) { fmt.Fprintf(e.stderr, "lockkeeper: %s\n", shown(line)) }

// complain prints an error, without the prefix of the library's errors, which say adds.
func (e environment) complain(err error) { e.say(strings.TrimPrefix(err.Error(), "lockkeeper: ")) }

// sayWriter is the writer of a logger; it prints each line with say.
type sayWriter struct{ environment }

func (s sayWriter) Write(line []byte) (n int, err error) {
	s.say(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// messages writes the output of run, on its own goroutine. A reader that does not read, like a terminal that is stopped
// with Ctrl-S, must not keep run from ending its command when the lock is lost.
type messages struct {
	to    io.Writer
	queue chan message
}

// message is a text to be written; nil ends the goroutine.
type message struct {
	text    []byte
	written chan struct{}
}

// A message that is written within writePatience keeps its place among the output of the command. If maxMessages wait,
// further messages are dropped.
const (
	writePatience = 100 * time.Millisecond
	maxMessages   = 1000
)

func newMessages(to io.Writer) *messages {
	m := &messages{to: to, queue: make(chan message, maxMessages)}
	go m.run()
	return m
}

func (m *messages) run() {
	for next := range m.queue {
		if next.text != nil {
			_, _ = m.to.Write(next.text)
		}
		close(next.written)
		if next.text == nil {
			return
		}
	}
}

// Write implements io.Writer.
func (m *messages) Write(text []byte) (n int, err error) {
	next := message{append([]byte{}, text...), make(chan struct{})}
	select {
	case m.queue <- next:
	default:
		return len(text), nil
	}
	select {
	case <-next.written:
	case <-time.After(writePatience):
	}
	return len(text), nil
}

// end returns when all messages are written.
func (m *messages) end() {
	last := message{written: make(chan struct{})}
	m.queue <- last
	<-last.written
}

// output is the standard output. It keeps the first error of a write: otherwise the exit code would be 0 when
// the disk is full.
type output struct {
	to  io.Writer
	err error
}

var errOutput = errors.New("the output cannot be written")

func (o *output) Write(p []byte) (n int, err error) {
	if n, err = o.to.Write(p); err != nil {
		o.err = cmp.Or(o.err, err)
		err = fmt.Errorf("%w: %w", errOutput, err)
	}
	return n, err
}

// forCommand returns the standard output for a command that is run: the file itself.
func forCommand(stdout io.Writer) io.Writer {
	if o, ours := stdout.(*output); ours {
		return o.to
	}
	return stdout
}
