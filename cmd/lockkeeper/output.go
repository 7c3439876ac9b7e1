//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
)

// say prints a line on the standard error: all of it is seen, whatever names and texts of Redis it has.
func (e environment) say(line string) { fmt.Fprintf(e.stderr, "lockkeeper: %s\n", shown(line)) }

// complain prints an error. Those of the library begin as what is printed does.
func (e environment) complain(err error) { e.say(strings.TrimPrefix(err.Error(), "lockkeeper: ")) }

// said has each line of a logger printed.
type said struct{ environment }

func (s said) Write(line []byte) (n int, err error) {
	s.say(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// output is the standard output, which remembers that something could not be written: else a full disk would
// pass for success.
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

// forCommand is the standard output for a command that is run: the file itself.
func forCommand(stdout io.Writer) io.Writer {
	if o, ours := stdout.(*output); ours {
		return o.to
	}
	return stdout
}
