#!/bin/sh
# Installs the Debian packages that building needs, when they are missing. Says what it does; asks for nothing
# when everything is there, so later calls work offline.
set -eu

packages="g++ cmake ninja-build python3 python3-pip libfmt-dev libsimdjson-dev libboost-dev libboost-system-dev libboost-context-dev \
libcli11-dev libtomlplusplus-dev libzip-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev libedit-dev libgtest-dev \
libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc"

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "bootstrap: not a Debian system; install the equivalents of: $packages" >&2
  exit 0
fi

missing=""
for package in $packages; do
  if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed"; then
    missing="$missing $package"
  fi
done
# Any python3 with pip does: a user's own interpreter makes Debian's unnecessary.
if python3 -m pip --version >/dev/null 2>&1; then
  missing=$(printf '%s\n' $missing | grep -v -x -e python3 -e python3-pip | tr '\n' ' ' || true)
fi
[ -n "$(echo $missing)" ] || exit 0

echo "bootstrap: missing system packages:" $missing
if [ "$(id -u)" -eq 0 ]; then
  run=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  run="sudo"
else
  echo "bootstrap: not root and no password-free sudo; install them with:" >&2
  echo "    sudo apt-get install --no-install-recommends" $missing >&2
  exit 5
fi
echo "bootstrap: installing them with ${run:+$run }apt-get"
$run apt-get update -q
DEBIAN_FRONTEND=noninteractive $run apt-get install -q -y --no-install-recommends $missing
