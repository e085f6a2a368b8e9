#!/usr/bin/env bash
# Makes the virtual environment build/python/venv that a build takes for its Python module, and its tests run from:
# nanobind, pytest, mypy, numpy and gguf. Configure the build again afterwards. Exit code 0: installed; else what pip said.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/python/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check nanobind pytest mypy numpy gguf
"$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -iE '^(nanobind|pytest|mypy|numpy|gguf) '
