#!/usr/bin/env python3
"""Fails when a source file outgrows one noun: 500 lines, or 700 for tests."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_LINES, TEST_LIMIT_LINES = 500, 700
SUFFIXES = {".h", ".cc", ".cu", ".py", ".sh", ".cmake"}


def tracked_files():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                         capture_output=True, text=True)
    if out.returncode == 0:
        return [ROOT / name for name in out.stdout.splitlines()]
    return [p for d in ("src", "include", "tests", "scripts", "bench") for p in (ROOT / d).rglob("*")]


def main():
    faults, files = [], 0
    for path in tracked_files():
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        files += 1
        is_test = path.name.endswith("_test.cc") or "tests" in path.relative_to(ROOT).parts
        limit = TEST_LIMIT_LINES if is_test else LIMIT_LINES
        lines = len(path.read_text(encoding="utf-8", errors="replace").splitlines())
        if lines > limit:
            faults.append(f"{path.relative_to(ROOT)}: {lines} lines, the limit is {limit}")
    print("\n".join(faults) or f"{files} files within their limit")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
