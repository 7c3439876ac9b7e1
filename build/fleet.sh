#!/usr/bin/env bash
# Five nodes with a singleton and grains under all nemeses, judged; see docs/actors.md.
#
#   build/fleet.sh short       40 s of them; and each rule is broken in turn, and the judge must notice
#   build/fleet.sh long [30m]  the nemeses for longer
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
case ${1:-} in
  short) go test -C tests/fleet -tags fleet -v -run 'TestNemeses|TestControls$' -parallel 2 -timeout 10m . -fleet.time=40s ;;
  long) go test -C tests/fleet -tags fleet -v -run TestNemeses -timeout 0 . -fleet.time="${2:-30m}" ;;
  *)
    echo "$0 short or long" >&2
    exit 2
    ;;
esac
