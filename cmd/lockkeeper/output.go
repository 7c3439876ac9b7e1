//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
)

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
