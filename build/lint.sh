#!/usr/bin/env bash
# gofmt, go vet and staticcheck; modules are tidy, and the generated code is up to date. Each module is checked with
# the dependencies that it asks for itself.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted"; exit 1; }
for module in . cmd/lockkeeper examples examples/processes grains interop lockkeepertest tests/browser tests/fleet robustness bench messages/internal/gen; do
  echo "== $module"
  (
    cd "$module"
    export GOWORK=off GOFLAGS=-tags=fleet # with the tests of make fleet
    go vet ./...
    go run $staticcheck ./...
    go mod tidy -diff
  )
done
(cd bench && GOWORK=off go run $staticcheck -tags gozero .)
go generate ./messages
git diff --exit-code -- messages
