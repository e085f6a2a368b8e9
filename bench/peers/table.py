#!/usr/bin/env python3
"""The table of what compare.py measured, as Markdown: table.py bench/results/*.json."""
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


def main():
    for path in sys.argv[1:]:
        try:
            print_report(json.loads(pathlib.Path(path).read_text()))
        except (OSError, json.JSONDecodeError) as failure:
            raise SystemExit(f"table: {path}: {failure}") from None


if __name__ == "__main__":
    main()
