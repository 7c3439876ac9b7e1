#!/usr/bin/env bash
# What every kind must pass, and clusters and Sentinel, on Valkey and on Redis 8: `build/test-servers.sh valkey` or
# `redis8` is for one of them. Without arguments a server that cannot be fetched is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

servers=("$@")
if [ $# = 0 ]; then
  if build/valkey.sh; then
    servers+=(valkey)
  else
    echo "NOT RUN: this machine's packages have no Valkey, or are out of reach"
  fi
  if build/redis8.sh source; then
    servers+=(redis8)
  else
    echo "NOT RUN: Debian's packages, which have the source of Redis 8, are out of reach"
  fi
fi

try() {
  "build/$1.sh"
  PATH=$PWD/bin/$1:$PATH go test -count=1 -timeout 5m ./tests/conformance ./tests/topology
}

logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
jobs=()
for server in "${servers[@]}"; do
  try "$server" >"$logs/$server" 2>&1 &
  jobs+=($!)
done
failed=0
for i in "${!servers[@]}"; do
  wait "${jobs[i]}" || failed=1
  echo "== ${servers[i]}"
  cat "$logs/${servers[i]}"
done
exit $failed
