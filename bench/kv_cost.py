#!/usr/bin/env python3
"""What KV policies take and save while tokens are generated: kv_cost.py MODEL --file TEXT [--out FILE]

Each comparison takes its variants in turn, forwards and backwards (A B C C B A):
  attention  what a token takes longer behind many tokens than behind none, over f16 and over coarser cells
  policy     a token behind many tokens without a policy, and with a ladder that measures and plans but finds
             next to nothing to do, so that no coarser cells make up for what it takes
  log        a request under a budget with and without a log; its own planning and recording, from the log

Results are checked first: the bytes must be those that were asked for, and a log must change no token.
"""
import argparse
import json
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/kvasir"
CELLS = {  # name: flags, and the greatest share of f16's bytes that its cells may have
    "f16": (["--kv-policy", "none"], 1.0),
    "q8": (["--kv-policy", "q8", "--kv-budget", "0.1", "--kv-quality", "best_effort"], 0.55),
    "k4v4": (["--kv-policy", "k4v4", "--kv-budget", "0.1", "--kv-quality", "best_effort"], 0.32),
    "ladder at 30%": (["--kv-policy", "ladder", "--kv-budget", "0.3"], 0.301),
}


def in_turns(variants, rounds):
    """Every variant `rounds` times, forwards and backwards."""
    for turn in range(rounds):
        yield from variants if turn % 2 == 0 else reversed(variants)


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "runs": values}


def token_ms(args, depths, gen, flags):
    """Milliseconds of a generated token behind each of `depths` tokens, and the share of the bytes at the deepest."""
    command = [args.binary, "bench", args.model, "--prompt", "0", "--gen", str(gen), "--repeat", "1", "--json",
               "--depth", ",".join(map(str, depths)), *flags]
    results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = {row["depth"]: row for row in results["results"]}
    return ([1000 / rows[depth]["tokens_per_s"]["median"] for depth in depths], rows[depths[-1]]["kv_bytes_share"],
            results["machine"])


def measure_attention(args):
    extra = {name: [] for name in CELLS}
    shares = {}
    for name in in_turns(list(CELLS), args.rounds):
        flags, most = CELLS[name]
        (none, deep), shares[name], _ = token_ms(args, [0, args.depth], 32, flags)
        if shares[name] > most:
            sys.exit(f"{name}: {shares[name]:.3f} of f16's bytes, at most {most} were asked for")
        extra[name].append(deep - none)
        print(f"attention over {name}: {deep - none:.2f} ms of {deep:.2f}", file=sys.stderr, flush=True)
    return {name: {"bytes_share": shares[name], "ms": spread(extra[name]),
                   "of_f16": statistics.median(ours / f16 for ours, f16 in zip(extra[name], extra["f16"]))}
            for name in CELLS}


def measure_policy(args):
    variants = {"none": ["--kv-policy", "none"], "ladder": ["--kv-policy", "ladder", "--kv-budget", "0.97"]}
    times = {name: [] for name in variants}
    for name in in_turns(list(variants), args.rounds):
        (ms,), share, machine = token_ms(args, [args.depth], 256, variants[name])
        times[name].append(ms)
        print(f"policy {name}: {ms:.2f} ms a token, {share:.3f} of the bytes", file=sys.stderr, flush=True)
    ratios = [ladder / none for ladder, none in zip(times["ladder"], times["none"])]
    return machine, {**{f"{name}_ms": spread(times[name]) for name in variants}, "ratio": spread(ratios)}


def run_request(args, prompt, log):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    command = [args.binary, "run", args.model, "--raw", "--temperature", "0", "--max-tokens", "64", "--json",
               "--kv-budget", "0.3", *(["--kv-log", log] if log else [])]
    answer = json.loads(subprocess.run(command, input=prompt, check=True, capture_output=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, {"seconds": time.monotonic() - start,
                    "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def measure_log(args):
    prompt = pathlib.Path(args.file).read_bytes()[:args.bytes]
    runs = {"without": [], "with": []}
    own = []
    tokens = None
    for name in in_turns(list(runs), args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            log = f"{folder}/kv.db"
            answer, took = run_request(args, prompt, log if name == "with" else None)
            tokens = tokens or answer["token_ids"]
            if answer["token_ids"] != tokens:
                sys.exit(f"the answer {name} a log has other tokens")
            if name == "with":
                planning, recording, steps = sqlite3.connect(log).execute(
                    "select sum(policy_ms), sum(record_ms), count(*) from steps").fetchone()
                own.append({"planning_ms": planning, "recording_ms": recording, "steps": steps})
        runs[name].append(took)
        print(f"{name} a log: {json.dumps(took)}", file=sys.stderr, flush=True)
    ratios = {key: spread([ours[key] / bare[key] for ours, bare in zip(runs["with"], runs["without"])])
              for key in ("seconds", "cpu_seconds")}
    return {"prompt_tokens": answer["prompt_tokens"], "runs": runs, "own": own, "ratio": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--binary", default=str(BINARY))
    parser.add_argument("--depth", type=int, default=7900, help="tokens before those that are timed")
    parser.add_argument("--bytes", type=int, default=34000, help="of --file, the prompt of the request that is logged")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    log = measure_log(args)
    machine, policy = measure_policy(args)
    report = {"model": args.model, "machine": machine, "depth": args.depth, "log": log, "policy": policy,
              "attention": measure_attention(args)}
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({"log": log["ratio"], "policy": policy["ratio"], "attention": report["attention"]}, indent=1))


if __name__ == "__main__":
    main()
