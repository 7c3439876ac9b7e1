#!/usr/bin/env bash
# Photographs the console of examples/console for docs/operate.md.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh chromium
dir=$(mktemp -d)
go build -o "$dir/service" ./examples/console
"$dir/service" -http 127.0.0.1:8917 >/dev/null &
trap 'kill %1; rm -r "$dir"' EXIT
page=http://127.0.0.1:8917/locks
timeout 12 curl -sN --retry 9 --retry-delay 1 --retry-connrefused $page/events >/dev/null || true

shot() {
  timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/profile" \
    --timeout=3000 --screenshot="docs/console-$1.png" "${@:2}" $page/ 2>/dev/null
}
shot light --window-size=1100,860
shot dark --window-size=1100,860 --blink-settings=preferredColorScheme=0
shot phone --window-size=500,1180
