#!/usr/bin/env bash
# How the library's API differs from that of the last tag; from v1 on, an incompatible change fails.
set -euo pipefail
cd "$(dirname "$0")/.."

apidiff() { # the tool's notes on internal packages are left out
  GOWORK=off go run golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e -m "$@" \
    2> >(grep -v '^Ignoring internal package' >&2)
}

if ! tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null); then
  echo "no version is tagged yet: the API is compared with nothing"
  exit 0
fi
echo "changes of the API since $tag:"
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
git archive "$tag" | tar x -C "$dir"
(cd "$dir" && apidiff -w "$dir/api" .)
apidiff "$dir/api" . | tee "$dir/changes"
case $tag in
  v0.*) ;;
  *) ! grep -q '^Incompatible' "$dir/changes" || exit 1 ;;
esac
