#!/usr/bin/env bash
# Builds Redis 8 in bin/redis8, if it is missing, from the source that is in the packages of Debian 13. A compiler and
# libssl-dev are installed. `build/redis8.sh source` only fetches the source.
set -euo pipefail
cd "$(dirname "$0")/.."

need=$PWD/build/need.sh
mkdir -p bin/redis8
cd bin/redis8
if [ ! -e source.tar.gz ]; then
  "$need" debian-archive-keyring
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  rm -f redis_*
  mkdir -p lists
  echo "deb-src [signed-by=$keys] http://deb.debian.org/debian trixie main" >sources.list
  from=(-qq -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD"
    -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null)
  apt-get "${from[@]}" update
  apt-get "${from[@]}" --download-only --tar-only source redis
  mv redis_*.orig.tar.gz source.tar.gz
  rm -r lists
fi
[ "${1:-}" != source ] || exit 0
if [ ! -x redis-server ]; then
  "$need" g++ libssl-dev
  mkdir -p source
  tar xzf source.tar.gz -C source --strip-components=1
  make -s -C source/src MALLOC=libc OPTIMIZATION=-O1 BUILD_TLS=yes redis-server redis-cli >build.log 2>&1 ||
    { tail build.log; exit 1; }
  ln -sf redis-server redis-sentinel
  mv source/src/redis-cli source/src/redis-server .
  rm -r source
fi
./redis-server --version
