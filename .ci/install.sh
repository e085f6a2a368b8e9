#!/usr/bin/env bash
# Installs what CI needs beyond scripts/bootstrap.sh.
#
#   .ci/install.sh module   what a build has to find for its Python module: nanobind, with pytest and mypy
#   .ci/install.sh tests    a browser, manual page readers, promtool, the clients of tests/clients, torch for tests/python/train
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

# Debian's own is 150 MB where the package index's brings gigabytes of libraries of GPUs. It is made for one Python, and
# Debian 12's for numpy 1.
torch_for_tests() {
  local python=build/python/venv/bin/python debian
  debian=$(apt-cache depends python3-torch 2>/dev/null | sed -n 's/^  Depends: <python\(3\.[0-9]*\):any>$/\1/p')
  if $python -c 'import torch' 2>/dev/null; then return 0; fi
  if [ "$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" != "$debian" ]; then
    build/python/venv/bin/pip install --quiet --disable-pip-version-check torch
    return 0
  fi
  apt_install python3-torch libopenblas0-pthread
  [ "$debian" != 3.11 ] || build/python/venv/bin/pip install --quiet --disable-pip-version-check 'numpy<2'
  # Behind the environment's own packages.
  echo /usr/lib/python3/dist-packages >"$($python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/debian.pth"
  $python -c 'import torch'
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
    torch_for_tests
    tests/clients/install.sh page traces
    ;;
  *) echo "install.sh: module or tests" >&2; exit 2 ;;
esac
