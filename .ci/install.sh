#!/usr/bin/env bash
# Installs what CI needs beyond scripts/bootstrap.sh.
#
#   .ci/install.sh module   what a build has to find for its Python module: nanobind, with pytest and mypy
#   .ci/install.sh tests    a browser, manual page readers and the clients of tests/clients
#
# Exit code: 0, or what apt-get or pip said.
set -euo pipefail
cd "$(dirname "$0")/.."

apt_install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo -n)
  "${root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -q
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -q -y \
    --no-install-recommends "${missing[@]}"
}

case ${1:-} in
  module)
    # Debian's own python3 comes without venv and headers; another one brings both.
    if [ "$(readlink -f "$(command -v python3)" | cut -d/ -f1-3)" = /usr/bin ]; then
      apt_install python3-venv python3-dev
    fi
    tests/python/install.sh
    ;;
  tests)
    apt_install chromium chromium-driver mandoc openssl pkg-config zsh
    tests/clients/install.sh page traces
    ;;
  *) echo "install.sh: module or tests" >&2; exit 2 ;;
esac
