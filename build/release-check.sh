#!/usr/bin/env bash
# What those who import the modules get: the changes of the API, documented packages, no replace in the library, and
# modules that build by themselves, and with the last tag.
set -euo pipefail
cd "$(dirname "$0")/.."

build/api-diff.sh
build/as-imported.sh
! grep -n '^replace' go.mod || exit 1
export GOWORK=off
for package in $(go list ./... | grep -v -e /internal -e /tests); do
  [ -n "$(go list -f '{{.Doc}}' "$package")" ] || { echo "$package has no package comment"; exit 1; }
  go doc -all "$package" >/dev/null
done
for module in . cmd/lockkeeper examples grains lockkeepertest; do
  (cd $module && go build -o /dev/null ./... && go vet ./...)
done
