"""Tests the package as this build has it: run_package.py suite|types FOLDER, where FOLDER holds kvasir, or is "none"."""
import importlib.util
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
NEEDED = {"suite": "pytest", "types": "mypy"}


def main() -> int:
    part, folder = sys.argv[1:]
    if folder == "none":
        print("skipped: this build has no Python module (cmake says why)")
        return SKIPPED
    if importlib.util.find_spec(NEEDED[part]) is None:
        print(f"skipped: {sys.executable} has no {NEEDED[part]} (tests/python/install.sh gets it)")
        return SKIPPED
    if part == "types":
        return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=TESTS.parents[1],
                              check=False).returncode
    return subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(TESTS)],
                          env={**os.environ, "PYTHONPATH": folder}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
