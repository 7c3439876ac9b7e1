#!/usr/bin/env bash
# Breaks the code in many places, one at a time: do the tests notice? build/mutants.sh [SEED [N]]; N is the number of
# mutants of each package.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
mutants() { go run ./tests/mutants -pkg "$2" -n "${n:-$1}" -seed "$seed"; }
seed=${1:-1} n=${2:-}
mutants 120 ./internal/lock
mutants 60 ./internal/semaphore
mutants 60 ./internal/expirable
mutants 60 ./internal/singleton
mutants 80 ./scripts
