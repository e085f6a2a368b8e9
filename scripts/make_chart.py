#!/usr/bin/env python3
"""README's chart of the rows that bench/peers/compare.py kept: make_chart.py [--check] [OUT.svg]

--check writes nothing and fails where the file is not what the rows give. Exit codes: 0, or 1 where it differs.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "bench/results/zen4"
FILES = {"smollm2-135m": "SmolLM2-135M Q4_1", "gemma3-270m": "Gemma 3 270M Q4_K_M", "1b-Q4_0": "1B shape Q4_0"}
CELLS = {"pp512": "Prompt of 512 tokens", "tg128": "Generation of 128", "tg32x16": "16 streams"}
PEERS = {"llama.cpp": "#1d4ed8", "ik_llama.cpp": "#0f766e"}
WIDTH, BAR, LABELS, ONE, MOST = 760, 13, 185, 70, 7.0  # pixels; ONE: of a ratio of 1; MOST: the longest bar's ratio


def text(x, y, words, extra=""):
    return f'<text x="{x}" y="{y}" {extra}>{words}</text>'


def chart():
    parts, y = [], 24
    parts.append(text(12, y, "Tokens per second of Kvasir, as a multiple of a peer's (two cores, Zen 4)", 'font-weight="600"'))
    for i, (peer, colour) in enumerate(PEERS.items()):
        parts.append(f'<rect x="{540 + 100 * i}" y="{y + 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(555 + 100 * i, y + 18, peer))
    for cell, title in CELLS.items():
        y += 30
        parts.append(text(12, y, title, 'font-weight="600"'))
        y += 8
        for file, model in FILES.items():
            rows = {(row["cell"], row["of"]): row for row in json.loads((ROWS / f"{file}.json").read_text())["rows"]
                    if row["mode"] == "exact" and "peer" in row}
            found = [(peer, rows[cell, peer]["ratio"]) for peer in PEERS if (cell, peer) in rows]
            if not found:
                continue
            parts.append(text(24, y + 16, model))
            for peer, ratio in found:
                parts.append(f'<rect x="{LABELS}" y="{y + 2}" width="{min(ratio, MOST) * ONE:.0f}" height="{BAR}" '
                             f'fill="{PEERS[peer]}"/>')
                parts.append(text(LABELS + min(ratio, MOST) * ONE + 6, y + 13, f"{ratio:.2f}"))
                y += BAR + 2
            y += 8
    y += 8
    line = f'<line x1="{LABELS + ONE}" x2="{LABELS + ONE}" y1="48" y2="{y}" stroke="#16181d" stroke-dasharray="3 3"/>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 14}" font-family="sans-serif" font-size="12" '
            f'fill="#16181d">\n<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join([*parts, line]) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="whether the file is what the rows give")
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=ROOT / "docs/images/speed.svg")
    args = parser.parse_args()
    if args.check:
        return 0 if args.out.read_text() == chart() else 1
    args.out.write_text(chart())
    return 0


if __name__ == "__main__":
    sys.exit(main())
