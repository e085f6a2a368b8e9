#!/usr/bin/env python3
"""Fails when a document names a file or folder that is not in the tree.

Looks at the words in backticks that end like a file of this tree or have a slash, outside of code blocks. A word may be
the end of a path ("sched/scheduler.cc"). Words with a placeholder, a flag, or a path of the machine are left alone.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("CONTRIBUTING.md",)
FILE = re.compile(r"[\w./-]+\.(?:h|cc|py|sh|md|cmake|css|js|txt|toml|proto|def|rules|yml)")
FOLDER = re.compile(r"(?:src|tests|scripts|docs|cmake|deploy|bench|examples|include)(?:/[\w.-]+)*/?|[\w-]+(?:/[\w-]+)*/")


def tree():
    """Every end of every path, of files and folders."""
    ends = set()
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False)
    paths = listed.stdout.splitlines() or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                                            if "build" not in path.relative_to(ROOT).parts[:1]]
    for path in paths:
        parts = path.split("/")
        for last in range(1, len(parts) + 1):
            for first in range(last):
                ends.add("/".join(parts[first:last]))
    return ends


def main():
    ends, faults, count = tree(), [], 0
    for document in DOCUMENTS:
        prose = re.sub(r"```.*?```", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
        for word in re.findall(r"`([^`\s]+)`", prose):
            if FILE.fullmatch(word) or FOLDER.fullmatch(word):
                count += 1
                if word.strip("/") not in ends and not word.startswith("build/"):
                    faults.append(f"{document}: no {word}")
    print("\n".join(faults) or f"{count} paths exist")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
