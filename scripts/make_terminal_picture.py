#!/usr/bin/env python3
"""A picture of the chat at a terminal, of a conversation that is held for it: make_terminal_picture.py KVASIR OUT.svg"""
import html
import os
import pty
import re
import select
import sys
import time

QUESTIONS = ["What is the capital of France?", "And of Italy?"]
COLUMNS, WAIT_S, QUIET_S = 92, 120, 4
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-_])")


def read_until_quiet(fd):
    """What the program says until it has been quiet for a while."""
    said, deadline = b"", time.monotonic() + WAIT_S
    while time.monotonic() < deadline and select.select([fd], [], [], QUIET_S if said else 30)[0]:
        try:
            said += os.read(fd, 65536)
        except OSError:
            break
    return said


def conversation(kvasir):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "dumb", "COLUMNS": str(COLUMNS)}
        os.execv(kvasir, [kvasir, "run", "smollm2:135m", "--temperature", "0", "--max-tokens", "60"])
    said = read_until_quiet(fd)
    for line in [*QUESTIONS, "/exit"]:
        os.write(fd, line.encode() + b"\r")
        said += read_until_quiet(fd)
    os.waitpid(pid, 0)
    return SEQUENCE.sub("", said.decode(errors="replace"))


def lines_of(text):
    """As a terminal shows them: a carriage return begins the line again."""
    for line in text.replace("\r\n", "\n").split("\n"):
        line = line.split("\r")[-1]
        yield from [line[i:i + COLUMNS] for i in range(0, max(1, len(line)), COLUMNS)]


def main():
    kvasir, out = sys.argv[1:]
    lines = list(lines_of(conversation(kvasir).strip()))
    parts = [f'<text x="16" y="{28 + 20 * i}" xml:space="preserve">{html.escape(line)}</text>' for i, line in enumerate(lines)]
    with open(out, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * 8 + 32}" height="{36 + 20 * len(lines)}" '
                   'font-family="monospace" font-size="13" fill="#eceef2">\n<rect width="100%" height="100%" rx="8" '
                   'fill="#14161a"/>\n' + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    main()
