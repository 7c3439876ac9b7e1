//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// access contains the common flags of the subcommands for operators, which connect to Redis and print.
type access struct {
	environment
	redis, prefix string
	json          bool
	args          []string // the arguments that are not flags
}

// accessHelp describes the flags of an access; redisHelp describes the flags for the URL.
const accessHelp = redisHelp + `  -prefix P      the Config.KeyPrefix of the Systems; names are without it
  --json         print JSON, an object a line; times are in milliseconds. Errors are text on stderr
`

const redisHelp = `  -redis URL     redis[s]://[user[:password]@]host[:port][/database]; for a cluster
                 redis[s]-cluster://host[:port][,host[:port]…], and for Sentinels
                 redis[s]-sentinel://host[:port][,host[:port]…]?master_set=NAME. Without it
                 the environment's REDIS_URL, or redis://127.0.0.1:6379. Other users can see a
                 command line: put a password into REDIS_URL, or into a file that
                 ?password_file=FILE names. Further options are tls_ca, tls_cert and tls_key, each
                 a file, tls_server_name=NAME, protocol=2 for a proxy that refuses HELLO 3,
                 dial_timeout=5s, and for Sentinels sentinel_username and sentinel_password
`

// redisOf returns the URL of Redis from the environment; of several variables, the last one is used.
func redisOf(variables []string) string {
	for _, variable := range slices.Backward(variables) {
		if url, ok := strings.CutPrefix(variable, "REDIS_URL="); ok && url != "" {
			return url
		}
	}
	return "redis://127.0.0.1:6379"
}

// flags returns the common flags, to which a subcommand may add its own.
func (a *access) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // parse prints the error
	flags.StringVar(&a.redis, "redis", redisOf(a.variables), "")
	flags.StringVar(&a.prefix, "prefix", "", "")
	flags.BoolVar(&a.json, "json", false, "")
	return flags
}

// parse reads a command line, in which flags may follow other arguments. If the subcommand must not
// continue, it returns false and the exit code.
func (a *access) parse(flags *flag.FlagSet, args []string, help string, check func() error) (code int, ok bool) {
	err := flags.Parse(args)
	for err == nil && flags.NArg() > 0 {
		a.args = append(a.args, flags.Arg(0))
		err = flags.Parse(flags.Args()[1:])
	}
	if err == nil {
		err = check()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(a.stdout, help)
		return 0, false
	case err != nil:
		a.complain(err)
		fmt.Fprintln(a.stderr, usageOf(help))
		return exitUsage, false
	}
	return 0, true
}

// usageOf returns the first line of a help text.
func usageOf(help string) string {
	usage, _, _ := strings.Cut(help, "\n")
	return usage
}

// oneName returns an error unless the arguments are one name.
func (a *access) oneName() error {
	if len(a.args) != 1 || a.args[0] == "" {
		return errors.New("the name of one lock is expected")
	}
	return nil
}

// none returns an error if there are arguments.
func (a *access) none() error {
	if len(a.args) > 0 {
		return fmt.Errorf("%q is not expected", a.args[0])
	}
	return nil
}

// with connects, and runs f until a signal comes. It prints the error, and returns the exit code.
func (a *access) with(f func(ctx context.Context, client rueidis.Client) (code int, err error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := lockkeeper.Connect(a.redis)
	if err == nil {
		defer client.Close()
		var code int
		if code, err = f(ctx, client); err == nil {
			return code
		}
	}
	if errors.Is(err, errOutput) {
		return exitNo // dispatch prints it
	}
	a.complain(err)
	return exitCode(err)
}

// print prints a value as a line of JSON.
func (a *access) print(value any) error { return json.NewEncoder(a.stdout).Encode(value) }
