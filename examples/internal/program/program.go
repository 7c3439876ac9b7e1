// Package program is what the examples have in common and what is not about locks: a
// flag, a Redis, and an exit code.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
)

// Play is what an example does.
type Play func(redis *embedded.Redis, out io.Writer) error

// Main runs an example on the Redis that -redis names, or on one inside the program.
func Main(name string, play Play) { os.Exit(Run(name, play, os.Args[1:], os.Stdout, os.Stderr)) }

// Run is Main without the process around it. It gives the exit code: 0 if all went as
// told, 1 if not, 2 for arguments that are not understood.
func Run(name string, play Play, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("redis", "", "`URL` of a Redis; without it, one inside this program is used")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := on(*url, play, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

func on(url string, play Play, out io.Writer) error {
	redis, err := embedded.Open(url)
	if err != nil {
		return err
	}
	defer redis.Close()
	return play(redis, out)
}
