#!/usr/bin/env bash
# What needs more time: small worlds exhaustively, random worlds, real processes under faults.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
go test ./internal/lock ./internal/semaphore ./internal/expirable -run TestExplore -explore.states=30000
go test ./internal/singleton ./grains -run TestExplore -explore.states=1500000 -timeout 30m
go test ./internal/lock ./internal/backend -run TestRandomWorlds -world.time 1m
go test ./tests/topology -run TestReplicas_TakeoverGrantsNoLockTwice -replicas.kills=20 -replicas.lag=10ms
build/robustness.sh short
build/fleet.sh short
