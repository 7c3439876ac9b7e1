#!/usr/bin/env bash
# Fuzzes what reads input, each target for a while: build/fuzz.sh [1m]
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
for package in $(go list ./... ./cmd/lockkeeper); do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
    echo "== $package $target"
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}"
  done
done
