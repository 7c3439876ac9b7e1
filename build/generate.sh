#!/usr/bin/env bash
# Generates the Go of the messages, and the rules for ACL users in docs/acl.md, as the scripts need them.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
go generate ./messages
go test ./redisio -run TestACL_IsInTheDocument -acl.update
