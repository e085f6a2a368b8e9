#!/usr/bin/env bash
# Installs what CI needs beyond scripts/bootstrap.sh.
#
#   .ci/install.sh module   what a build has to find for its Python module: nanobind, with pytest and mypy
#   .ci/install.sh tests    a browser, manual page readers, promtool and the clients of tests/clients
#
# Exit code: 0, or what apt-get or pip said.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt_install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  as_root apt-get -o DPkg::Lock::Timeout=300 update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y \
    --no-install-recommends "${missing[@]}"
}

# Its package brings a service and eleven libraries of a page; one program of it is enough.
promtool_alone() {
  local bin=build/deploy/bin package
  if command -v promtool >/dev/null || [ -x $bin/promtool ]; then return 0; fi
  package=$(mktemp -d)
  cd "$package"
  apt-get -q download prometheus || { as_root apt-get -o DPkg::Lock::Timeout=300 update -q; apt-get -q download prometheus; }
  cd - >/dev/null
  mkdir -p $bin
  dpkg-deb --fsys-tarfile "$package"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$package/promtool"
  chmod +x "$package/promtool"
  mv "$package/promtool" $bin/
  rm -r "$package"
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
    promtool_alone
    tests/clients/install.sh page traces
    ;;
  *) echo "install.sh: module or tests" >&2; exit 2 ;;
esac
