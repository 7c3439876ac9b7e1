#!/usr/bin/env bash
# Builds programs, examples and lockkeepertest of the last tag (before there is one, of HEAD), with the library as
# `go get` brings it. The go command fetches the library from this repository as it would from its public place, with
# a cache of its own, since a tag may have moved; other modules come from the cache that is there.
set -euo pipefail
cd "$(dirname "$0")/.."

library=github.com/lockkeeper-go/lockkeeper
ref=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git rev-parse HEAD)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/modules"
git archive "$ref" | tar x -C "$dir/modules"

GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOPROXY GOWORK=off GOFLAGS='-mod=mod -modcacherw' GOMODCACHE=$dir/cache
export GONOPROXY=$library GONOSUMDB=$library
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$PWD.insteadOf GIT_CONFIG_VALUE_0=https://$library
for module in cmd/lockkeeper examples grains lockkeepertest; do
  cd "$dir/modules/$module"
  go mod edit -dropreplace=$library -droprequire=$library
  go get "$library@$ref" 2>&1 | { grep $library || true; }
  go build -o /dev/null ./...
  go vet ./...
done
