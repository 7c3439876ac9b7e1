//go:build !gozero

package main

import (
	"errors"
	"time"
)

// withGoZero: go-zero brings gRPC and OpenTelemetry along, whose 9 MB would be in the memory
// of every library that is measured, so it is built in only where it is asked for.
const withGoZero = false

func openGoZero(string, time.Duration, scenario) (library, error) {
	return nil, errors.New("go-zero is built in with -tags gozero")
}
