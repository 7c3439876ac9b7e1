#!/usr/bin/env bash
# Fetches Valkey into bin/valkey, if it is missing, from the packages of Debian (in 12: its backports) or Ubuntu.
# Nothing is installed, but for redis-server, whose libraries Valkey needs.
set -euo pipefail
cd "$(dirname "$0")/.."

build/need.sh redis-server
mkdir -p bin/valkey
cd bin/valkey
if [ ! -x redis-server ]; then
  # shellcheck source=/dev/null
  . /etc/os-release
  suite=$VERSION_CODENAME
  [ "$suite" != bookworm ] || suite=bookworm-backports
  mkdir -p lists
  from=(-qq -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD")
  if [ "$ID" = debian ]; then
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main" >sources.list
    from+=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null)
  fi
  apt-get "${from[@]}" update
  apt-get "${from[@]}" download valkey-tools # it has the program of the server, under another name
  dpkg-deb -x valkey-tools_*.deb .
  rm -r lists valkey-tools_*.deb
  ln -sf usr/bin/valkey-cli redis-cli
  ln -sf usr/bin/valkey-check-rdb redis-sentinel
  ln -sf usr/bin/valkey-check-rdb redis-server
fi
./redis-server --version
