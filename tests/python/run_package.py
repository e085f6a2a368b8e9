"""Tests the package as this build has it: run_package.py suite|train|types FOLDER, where FOLDER holds
kvasir, or is "none"."""
import importlib.util
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
NEEDED = {"suite": ["pytest", "numpy", "gguf"], "train": ["pytest", "numpy", "gguf", "torch"], "types": ["mypy", "numpy", "gguf"]}
TESTED = {"suite": [str(TESTS), f"--ignore={TESTS / 'train'}"], "train": [str(TESTS / "train")]}


def main() -> int:
    part, folder = sys.argv[1:]
    if folder == "none":
        print("skipped: this build has no Python module (cmake says why)")
        return SKIPPED
    for name in NEEDED[part]:
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {sys.executable} has no {name} (tests/python/install.sh gets it, torch .ci/install.sh tests)")
            return SKIPPED
    if part == "types":
        return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=TESTS.parents[1],
                              check=False).returncode
    return subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *TESTED[part]],
                          env={**os.environ, "PYTHONPATH": folder}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
