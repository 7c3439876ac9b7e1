#!/usr/bin/env bash
# The tests of the library and its programs, with the race detector, but not those in a browser. What computes for long
# shares no memory between goroutines: it runs without, several times as fast. What waits the longest begins first.
# proto.actor's remote has data races, so nodes and real processes run without, too.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
compute='^Test(Explore|Queue_MatchesItsModel|Withdrawals_DoNotCopyTheQueue|QuotedWords_DoNotCount)'
go test -run "$compute" ./internal/lock ./internal/semaphore ./internal/expirable ./internal/requestqueue ./internal/refusal
go test ./internal/singleton ./grains -run TestExplore -explore.states=30000
go test -race -skip "$compute" -p 5 -timeout 30m ./cmd/lockkeeper/... ./interop/... ./tests/conformance ./tests/faults \
  ./tests/kinds ./... ./examples/... ./grains ./lockkeepertest
go test -skip TestExplore -timeout 15m ./grains
go test -C tests/fleet -parallel 4 -timeout 15m .
go test -C robustness . ./history ./judge ./model ./traffic
go test -C robustness -run MatchSource ./controls
