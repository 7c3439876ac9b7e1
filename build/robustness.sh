#!/usr/bin/env bash
# Real processes under faults, judged; see robustness/README.md.
#
#   build/robustness.sh short                 the tests of the suite, and short runs over all kinds and faults
#   build/robustness.sh long [30m]            longer runs, the first with a look at leaks
#   build/robustness.sh topologies [3m [60s]] replicas that lag take over, with Sentinels and in a cluster; the time of
#                                             each run and of each of its rounds
#   build/robustness.sh hostile [30s]         mass cancels, giving up in every way, computing hosts, numbers near the
#                                             edges, foreign hashes, late forced releases
#   build/robustness.sh controls              break each safety rule in turn: the suite must notice
set -euo pipefail
cd "$(dirname "$0")/.."

suite() { go run -C robustness . "$@"; }

topologies() {
  for world in sentinel cluster; do
    for replicas in 1 0; do
      echo "== $world, Config.Replicas: $replicas"
      suite -world $world -replicas $replicas -time "$1" -round "$2" -soak=false
    done
  done
}

hostile() {
  for world in cancels giving-up computing edges foreign forced; do
    echo "== $world"
    suite -world $world -time "$1" -round 30s -soak=false
  done
}

build/need.sh redis-server faketime
case ${1:-} in
  short)
    go test -C robustness . ./controls ./history ./judge ./model ./traffic
    suite -time 150s -round 50s
    suite -world zones -time 30s -round 30s -soak=false
    suite -world several -time 30s -round 30s -soak=false
    topologies 20s 20s
    ;;
  long)
    suite -time "${2:-30m}" -round 60s
    suite -world zones -time 3m -round 30s -soak=false
    suite -world several -time 3m -round 30s -soak=false
    topologies 3m 60s
    hostile 3m
    ;;
  topologies) topologies "${2:-3m}" "${3:-60s}" ;;
  hostile) hostile "${2:-30s}" ;;
  controls) suite -controls all ;;
  *)
    echo "$0 short, long, topologies, hostile or controls" >&2
    exit 2
    ;;
esac
