#!/usr/bin/env bash
# Installs those of the named packages that are missing (Debian, Ubuntu).
set -euo pipefail

there() {
  case $1 in
    redis-server | chromium) command -v "$1" ;;
    faketime) ls /usr/lib/*/faketime/libfaketime.so.1 ;;
    *) dpkg -s "$1" ;;
  esac >/dev/null 2>&1
}

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
for package in "$@"; do
  if ! there "$package"; then
    echo "installing $package"
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null
  fi
done
