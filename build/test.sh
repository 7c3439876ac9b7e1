#!/usr/bin/env bash
# All tests but those in a browser, with the race detector. The exploration goes on for longer without it. What waits
# the longest begins first. proto.actor's remote has data races, so nodes and real processes run without the detector.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
go test ./internal/lock ./internal/semaphore ./internal/expirable -run TestExplore
go test ./internal/singleton ./grains -run TestExplore -explore.states=30000
go test -race -p 5 -timeout 10m ./cmd/lockkeeper/... ./interop/... ./tests/conformance ./tests/faults ./tests/kinds \
  ./... ./examples/... ./grains ./lockkeepertest
go test -timeout 5m ./grains
go test -C tests/fleet -parallel 4 -timeout 5m .
