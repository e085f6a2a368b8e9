#!/usr/bin/env python3
"""The highest rate at which a server keeps the SLO: goodput.py MODEL --file TEXT --workload TRACE.gz [--out FILE]

For each server, in turn: rates are doubled until fewer than 95% of the requests keep the SLO (outcomes.py), then the
bracket is halved until its ends are within --within of each other. Every rate has a server and prompts of its own. The
last column is the rate that was kept.
"""
import argparse
import json
import pathlib
import sys

import compare
import outcomes
import servers
import workloads

KEPT = 0.95  # of the requests


def search(try_rate, first, within):
    """The highest rate that was kept and what came at each; `try_rate` gives the row of a rate."""
    rows, kept, missed = [], 0.0, None
    rate = first
    while missed is None or missed > kept * within:
        row = try_rate(rate)
        rows.append(row)
        if row["in_slo"] >= KEPT * row["requests"]:
            kept = rate
        else:
            missed = rate
        if missed is None:
            rate *= 2
        elif kept == 0.0:
            rate /= 2
            if rate < first / 64:
                break
        else:
            rate = (kept * missed) ** 0.5
    return kept, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="text that prompts are pieces of")
    parser.add_argument("--workload", required=True, help="a trace of Azure's or Mooncake's")
    parser.add_argument("--servers", help="names, with semicolons between them (default: all)")
    parser.add_argument("--first", type=float, default=1.0, help="rate to begin with, requests per second")
    parser.add_argument("--within", type=float, default=1.15, help="how far apart kept and missed rates end")
    parser.add_argument("--seconds", type=float, default=60, help="of the trace, at each rate")
    parser.add_argument("--context", type=int, default=servers.CONTEXT)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    commands = compare.chosen_servers(args)
    text = compare.text_of(args)
    rows = []
    for turn in range(args.rounds):
        for name in list(commands) if turn % 2 == 0 else list(commands)[::-1]:

            def try_rate(rate):
                seed = (turn, name, rate)
                timed = workloads.at_rate(compare.rows_of_trace(args, text, seed), rate, args.seconds)
                requests = list(workloads.written_out(timed, text))
                came = compare.measure(commands[name], args.model, text, seed, requests, 0)
                print(compare.line_of(name, f"{rate:.2f} requests/s", came), file=sys.stderr, flush=True)
                return {"rate": rate, **came}

            kept, tried = search(try_rate, args.first, args.within)
            print(f"{name}: {kept:.2f} requests/s", file=sys.stderr, flush=True)
            rows.append({"server": name, "turn": turn, "goodput_per_s": kept, "rates": tried})
            if args.out:
                pathlib.Path(args.out).write_text(json.dumps(
                    {"model": args.model, "workload": pathlib.Path(args.workload).name, "seconds": args.seconds,
                     "context": args.context,
                     "slo": {"ttft_ms": outcomes.TTFT_MS, "gap_ms": outcomes.GAP_MS, "kept": KEPT}, "rows": rows},
                    indent=1) + "\n")


if __name__ == "__main__":
    main()
