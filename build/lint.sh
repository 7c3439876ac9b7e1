#!/usr/bin/env bash
# gofmt, go vet and staticcheck; modules are tidy, and the generated code is up to date. go vet builds each module with
# the dependencies that it asks for itself. staticcheck looks at all modules of go.work at once, and at each of the
# others.
set -euo pipefail
cd "$(dirname "$0")/.."

others=(examples/processes tests/fleet robustness bench messages/internal/gen)
export GOFLAGS=-tags=fleet # with the tests of make fleet

tools=$(mktemp -d)
trap 'rm -r "$tools"' EXIT
GOBIN=$tools go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
mapfile -t joined < <(go list -m -f '{{.Dir}}')

large=$(git ls-files -z | xargs -0 stat -c '%s %n' | awk '$1 > 500000')
[ -z "$large" ] || { echo "no source is that large: $large"; exit 1; }
unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted"; exit 1; }
for module in "${joined[@]}" "${others[@]}"; do
  echo "== ${module#"$PWD"/}"
  (cd "$module" && GOWORK=off go vet ./... && GOWORK=off go mod tidy -diff)
done
echo "== staticcheck"
"$tools/staticcheck" "${joined[@]/%//...}"
for module in "${others[@]}"; do
  (cd "$module" && GOWORK=off "$tools/staticcheck" ./...)
done
(cd bench && GOWORK=off "$tools/staticcheck" -tags gozero .)
go generate ./messages
git diff --exit-code -- messages
