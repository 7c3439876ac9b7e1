//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

const versionHelp = `usage: lockkeeper version [--json]

Prints the version of the program, and the Go that it was built with.

  --json  print JSON
`

type versionOptions struct{ json bool }

func (o *versionOptions) flags() *flag.FlagSet {
	flags := noFlags()
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.json, "json", false, "")
	return flags
}

func printVersion(args []string, env environment) int {
	var o versionOptions
	flags := o.flags()
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(env.stdout, versionHelp)
		return 0
	case err != nil || flags.NArg() > 0:
		fmt.Fprint(env.stderr, versionHelp)
		return exitUsage
	}
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	if o.json {
		// dispatch reports an error.
		_ = json.NewEncoder(env.stdout).Encode(map[string]string{"version": version, "go": runtime.Version()})
		return 0
	}
	fmt.Fprintf(env.stdout, "lockkeeper %s %s\n", version, runtime.Version())
	return 0
}
