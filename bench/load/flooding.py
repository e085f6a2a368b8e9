#!/usr/bin/env python3
"""A quiet tenant beside one that floods the server: flooding.py MODEL --file TEXT [--out FILE]

Both send prompts of 300 tokens for answers of 100, at times drawn at random: the quiet one --quiet requests a second,
the flooding one --flood. In turn the quiet one is alone and beside the other, each time with a server and prompts of
its own. Bar: the quiet one's p95 of TTFT moves by at most 1.5 times, and none of its requests is refused.

Exit codes: 0 held, 1 not.
"""
import argparse
import json
import pathlib
import random
import statistics
import sys

import compare
import outcomes
import servers
import workloads

GROWTH = 1.5
TENANTS = ("quiet", "flooding")


def arrivals(rate, seconds, *seed):
    """Times in ms of a Poisson process."""
    draw, at_s, times = random.Random(repr(seed)), 0.0, []
    while (at_s := at_s + draw.expovariate(rate)) < seconds:
        times.append(1000 * at_s)
    return times


def requests_of(text, key, rate, seconds, *seed):
    times = arrivals(rate, seconds, *seed, "times")
    return [{**request, "at_ms": at_ms, "api_key": key}
            for request, at_ms in zip(workloads.users(text, seed, len(times)), times)]


def play(args, text, turn, is_flooded):
    """A summary for each tenant."""
    with servers.keys_file(TENANTS) as (file, keys):
        rates = {"quiet": args.quiet, **({"flooding": args.flood} if is_flooded else {})}
        # The quiet one's times are the same alone and beside the other.
        requests = sorted((request for name, rate in rates.items()
                           for request in requests_of(text, keys[name], rate, args.seconds, turn, name)),
                          key=lambda request: request["at_ms"])
        command = [*servers.commands(args.model, compare.path_of(args.model))["kvasir"], "--api-keys", file]
        with servers.running(command) as server:
            compare.warm_up(server, args.model, text, turn, keys["quiet"])
            came, report, cpu_seconds = compare.play(server, args.model, requests, 0)
    rows = []
    for name in rates:
        own = [outcome for outcome in came if requests[outcome["index"]]["api_key"] == keys[name]]
        rows.append({"tenant": name, "flooded": is_flooded, "turn": turn,
                     **outcomes.summary(own, report["seconds"], report["client_cpu_seconds"], cpu_seconds)})
        print(compare.line_of(name, "flooded" if is_flooded else "alone", rows[-1]), file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="text that prompts are pieces of")
    parser.add_argument("--quiet", type=float, default=0.5, help="requests a second")
    parser.add_argument("--flood", type=float, default=16, help="requests a second")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    text = compare.text_of(args)
    rows = []
    for turn in range(args.rounds):
        for is_flooded in (False, True) if turn % 2 == 0 else (True, False):
            rows += play(args, text, turn, is_flooded)
    quiet = [row for row in rows if row["tenant"] == "quiet"]
    alone, flooded = (statistics.median([row["ttft_ms"]["p95"] for row in quiet if row["flooded"] == is_flooded])
                      for is_flooded in (False, True))
    refused = sum(row["requests"] - row["whole"] for row in quiet)
    held = flooded <= GROWTH * alone and refused == 0
    print(f"p95 of TTFT {flooded:.0f} ms beside the flood, {alone:.0f} ms alone: {flooded / alone:.2f} times (bar "
          f"{GROWTH:g}); {refused} of the quiet one's requests did not come whole: {'held' if held else 'MISSED'}")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(
            {"model": args.model, "quiet_per_s": args.quiet, "flood_per_s": args.flood, "seconds": args.seconds,
             "growth": flooded / alone, "rows": rows}, indent=1) + "\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
