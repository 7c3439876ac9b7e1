//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
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
