//go:build !gozero

package main

import (
	"errors"
	"time"
)

// withGoZero: go-zero depends on gRPC and OpenTelemetry, whose 9 MB would be in the memory of
// every measured library, so it is only built in with a tag.
const withGoZero = false

func openGoZero(string, time.Duration, scenario) (library, error) {
	return nil, errors.New("go-zero is built in with -tags gozero")
}
