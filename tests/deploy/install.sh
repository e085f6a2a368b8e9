#!/usr/bin/env bash
# Installs what the slow tests of this folder need on Debian: lintian, a clean root and a boot in it (mmdebstrap,
# systemd-nspawn), promtool, buildah and podman, the shells whose completions are tried, a cross compiler for 64-bit ARM
# and qemu; and makes build/deploy/venv with kubernetes-validate. Needs root. Exit code: 0, or what apt-get or pip said.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/deploy/venv
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
  lintian mmdebstrap dpkg-dev systemd-container prometheus buildah podman runc mandoc zsh fish file \
  g++-aarch64-linux-gnu qemu-user-static
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate
