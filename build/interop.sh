#!/usr/bin/env bash
# Shares locks with Redisson (Java) on one server, in a cluster, and with Sentinel: needs a JDK 17 and Maven.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
go run ./interop
go run ./interop -cluster -quick
go run ./interop -sentinel -quick
