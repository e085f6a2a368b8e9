#!/usr/bin/env python3
"""Kvasir beyond its capacity: overload.py MODEL --file TEXT --workload TRACE.gz --capacity R [--out FILE]

The trace comes at 0.9, 1 and 4 times R requests per second (what goodput.py finds), each time to a server and with
prompts of its own. Bars, at 4 times R: the goodput (requests that keep the SLO, per second) is at least 95% of that
at R; 99% of the refusals come within 20 ms, each a 429 or 503 with Retry-After, and nothing else fails; the p99 of
TTFT of those let in is at most twice that at 0.9 R.

Exit codes: 0 all held, 1 not.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import sys

import compare
import servers
import workloads

LOADS = (0.9, 1, 4)  # of the capacity
GOODPUT_KEPT = 0.95
REFUSAL_MS = 20
TTFT_GROWTH = 2


def play(args, text, turn, load):
    seed = (turn, "overload", load)
    timed = workloads.at_rate(compare.rows_of_trace(args, text, seed), load * args.capacity, args.seconds)
    requests = list(workloads.written_out(timed, text))
    command = [*servers.commands(args.model, compare.path_of(args.model))["kvasir"], *args.flags]
    came = compare.measure(command, args.model, text, seed, requests, 0)
    print(compare.line_of("kvasir", f"{load:g} x {args.capacity:g} requests/s", came), file=sys.stderr, flush=True)
    return {"load": load, "turn": turn, "goodput_per_s": came["in_slo"] / args.seconds, **came}


def judged(rows):
    """(what, value, bar, whether it held) of each bar, by medians over the rounds."""
    def at(load, value):
        return statistics.median([value(row) for row in rows if row["load"] == load])

    kept = at(4, lambda row: row["goodput_per_s"]) / at(1, lambda row: row["goodput_per_s"])
    growth = at(4, lambda row: row["ttft_ms"]["p99"]) / at(0.9, lambda row: row["ttft_ms"]["p99"])
    over = [row for row in rows if row["load"] == 4]
    refusal = max(row["refusal_ms"]["p99"] or 0 for row in over)
    wrong = sum(row["requests"] - row["whole"] - row["refused"] + row["refusal_ms"]["without_retry_after"]
                for row in over)
    return [("goodput, of that at the capacity", kept, GOODPUT_KEPT, kept >= GOODPUT_KEPT),
            ("refusals, p99 in ms", refusal, REFUSAL_MS, refusal <= REFUSAL_MS),
            ("neither whole nor refused as it should be", wrong, 0, wrong == 0),
            ("p99 of TTFT, of that at 0.9 of the capacity", growth, TTFT_GROWTH, growth <= TTFT_GROWTH)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="text that prompts are pieces of")
    parser.add_argument("--workload", required=True, help="a trace of Azure's or Mooncake's")
    parser.add_argument("--capacity", type=float, required=True, help="requests per second")
    parser.add_argument("--seconds", type=float, default=60, help="of the trace, at each load")
    parser.add_argument("--context", type=int, default=servers.CONTEXT)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", help="JSON")
    parser.add_argument("--flags", type=shlex.split, default=[], metavar="WORDS",
                        help="for kvasir serve, such as --flags=\"--max-step-ms 50\"")
    args = parser.parse_args()
    text = compare.text_of(args)
    rows = [play(args, text, turn, load) for turn in range(args.rounds) for load in LOADS]
    bars = judged(rows)
    for what, value, bar, held in bars:
        print(f"{what}: {value:.2f} (bar {bar:g}): {'held' if held else 'MISSED'}")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(
            {"model": args.model, "workload": pathlib.Path(args.workload).name, "capacity_per_s": args.capacity,
             "seconds": args.seconds, "context": args.context, "flags": args.flags,
             "bars": {what: value for what, value, _, _ in bars}, "rows": rows},
            indent=1) + "\n")
    return 0 if all(held for *_, held in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
