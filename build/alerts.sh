#!/usr/bin/env bash
# Checks the alerting rules and the links to their runbook, with a tool of Prometheus, which is fetched into bin if it
# is missing (Debian, Ubuntu).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -x bin/promtool ]; then
  root=()
  [ "$(id -u)" = 0 ] || root=(sudo)
  "${root[@]}" apt-get update -qq
  mkdir -p bin/prometheus
  (cd bin/prometheus && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool ..)
  rm -r bin/prometheus
fi
bin/promtool check rules docs/monitoring/alerts.yml
bin/promtool test rules docs/monitoring/alerts_test.yml
go test ./tests/layout -run TestRunbook -count 1 # each alert names a heading of docs/operate.md
