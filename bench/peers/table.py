#!/usr/bin/env python3
"""The tables of what compare.py measured, as Markdown: table.py [--short] bench/results/*.json.

--short gives README's: the cells that matter most, against llama.cpp and ik_llama.cpp alone.
"""
import argparse
import json
import pathlib
import statistics
import sys


def limits_beside(row):
    limits = [pair["limits"] for pair in row["pairs"]]
    median = lambda key: statistics.median(limit[key] for limit in limits)
    share = "" if row["share_of_limit"] is None else f"{row['share_of_limit']:.0%} of "
    return f"{share}{median('read_gb_s'):.0f} GB/s, {median('int8_gmac_s'):.0f} GMAC/s"


def print_report(report):
    print(f"\n### {report['model']}, {report['threads']} threads, {report['machine']['cpu']}\n")
    print("| cell | Kvasir | peer | rate | ratio (least to most) | share of the limit beside it |\n|---|---|---|---|---|---|")
    for row in report["rows"]:
        cell = row["cell"] + (" --fast" if row["mode"] == "fast" else "")
        if "peer" not in row:
            print(f"| {cell} | | {row['of']} | cannot | | |")
            continue
        print(f"| {cell} | {row['kvasir_rate']:.0f} | {row['peer']} | {row['peer_rate']:.0f} | "
              f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f}) | {limits_beside(row)} |")
    if "start" in report:
        ours, theirs = report["start"]["median"]["kvasir"], report["start"]["median"]["peer"]
        print(f"\nProcess start to the first token of about 128: {ours['seconds']:.2f} s and "
              f"{ours['peak_bytes'] / 2**20:.0f} MiB at most, llama.cpp {theirs['seconds']:.2f} s and "
              f"{theirs['peak_bytes'] / 2**20:.0f} MiB. The two programs' greedy continuations agree for "
              f"{report['outputs']['same_characters']} characters.")


SHORT_CELLS = {"pp512": "prompt of 512", "tg128": "generation of 128", "tg32x8": "8 streams", "tg32x16": "16 streams",
               "tg32x32": "32 streams", "attention7000": "attention at 7,000, a token's"}
SHORT_PEERS = ("llama.cpp", "ik_llama.cpp")


def print_short(reports):
    print("| | llama.cpp | ik_llama.cpp |\n|---|---|---|")
    for report in reports:
        rows = {(row["cell"], row["of"]): row for row in report["rows"] if row["mode"] == "exact" and "peer" in row}
        name = report["model"]
        for cell, words in SHORT_CELLS.items():
            of_cell = [rows.get((cell, peer)) for peer in SHORT_PEERS]
            if not any(of_cell):
                continue
            texts = ["" if row is None else f"{row['kvasir_rate']:.0f} to {row['peer_rate']:.0f}, {row['ratio']:.2f} "
                     f"({row['ratio_min']:.2f} to {row['ratio_max']:.2f})" for row in of_cell]
            print(f"| {name}{', ' if name else ''}{words} | {texts[0]} | {texts[1]} |")
            name = ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="README's table")
    parser.add_argument("reports", nargs="+", help="what compare.py wrote")
    args = parser.parse_args()
    reports = []
    for path in args.reports:
        try:
            report = json.loads(pathlib.Path(path).read_text())
        except (OSError, json.JSONDecodeError) as failure:
            raise SystemExit(f"table: {path}: {failure}") from None
        if "rows" in report:
            reports.append(report)
        else:
            print(f"table: {path}: not from compare.py, left out", file=sys.stderr)
    if args.short:
        return print_short(reports)
    for report in reports:
        print_report(report)


if __name__ == "__main__":
    main()
