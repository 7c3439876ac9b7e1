//go:build unix

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

const versionHelp = `usage: lockkeeper version

Prints the version of the program, and the Go that it was built with.
`

func printVersion(args []string, env environment) int {
	if len(args) > 0 {
		fmt.Fprint(env.stderr, versionHelp)
		return exitUsage
	}
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	fmt.Fprintf(env.stdout, "lockkeeper %s %s\n", version, runtime.Version())
	return 0
}
