#!/usr/bin/env python3
"""The cost and the saving of KV policies while tokens are generated: kv_cost.py MODEL --file TEXT [--out FILE]

One server, which logs what policies do. The same request, whose long prompt is in the prefix cache, comes in turns with
each policy, forwards and backwards (A B C C B A), so that what the machine does besides hits all alike:
  f16        no policy
  watched    a ladder that measures, plans and finds next to nothing to do: no coarser cells make up for what it takes
  q8, k4v4   every old cell in one coarser format
  30%        a ladder at 30% of the bytes
and f16 behind a prompt of 16 tokens: what a token takes longer behind the long one is attention's.
Checked first: the bytes that each keeps are those that were asked for.
"""
import argparse
import contextlib
import http.client
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "load"))
import servers  # noqa: E402

BEST_EFFORT = {"kv_quality": "best_effort"}
VARIANTS = {  # name: fields of the request, and between what its share of f16's bytes must be
    "f16": ({"kv_policy": "none"}, None),
    "watched": ({"kv_policy": "ladder", "kv_budget": 0.97}, (0.9, 0.971)),
    "q8": ({"kv_policy": "q8", "kv_budget": 0.1, **BEST_EFFORT}, (0.5, 0.56)),
    "k4v4": ({"kv_policy": "k4v4", "kv_budget": 0.1, **BEST_EFFORT}, (0.25, 0.33)),
    "30%": ({"kv_policy": "ladder", "kv_budget": 0.3, **BEST_EFFORT}, (0.25, 0.301)),
}


def token_ms(server, model, prompt, tokens, fields):
    """From the first piece of the answer to the last, over the tokens between."""
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"{fields}: {answer.status} {answer.read().decode()}")
    times, usage = [], None
    for line in answer:
        if line.startswith(b"data: {"):
            times.append(time.monotonic())
            usage = json.loads(line[6:]).get("usage") or usage
    if usage["completion_tokens"] != tokens:
        sys.exit(f"{usage['completion_tokens']} tokens came, {tokens} were asked for")
    return 1000 * (times[-2] - times[0]) / (tokens - 1)  # the last event is the usage


def check_bytes(log, names):
    """The last request of each variant, in this order, kept the bytes that it should."""
    rows = sqlite3.connect(log).execute("select bytes_share from sequences order by id").fetchall()
    shares = {}
    for name, (share,) in zip(names, rows[-len(names):]):
        least, most = VARIANTS[name][1]
        if not least <= share <= most:
            sys.exit(f"{name} kept {share:.3f} of f16's bytes, not {least} to {most}")
        shares[name] = share
    return shares


def spread(values):
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return {"median": statistics.median(ordered), "quartiles": [ordered[quarter], ordered[-1 - quarter]],
            "runs": values}


def writer_seconds(server):
    """Processor time of the thread that writes the log."""
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "kvasir-kv-log":
            return servers.cpu_seconds_of(task / "stat")
    sys.exit("no thread writes the log")


def measure(args, prompt, server, log):
    ask = {name: (prompt, fields) for name, (fields, _) in VARIANTS.items()}
    ask["short"] = (prompt[:16], VARIANTS["f16"][0])
    for text, fields in ask.values():  # what they leave in the prefix cache
        token_ms(server, args.model, text, args.tokens, fields)
    time.sleep(1)  # the log is written behind
    shares = check_bytes(log, [name for name, (_, share) in VARIANTS.items() if share])
    times = {name: [] for name in ask}
    before = server.cpu_seconds(), writer_seconds(server)
    for turn in range(args.rounds):
        for name in list(ask) if turn % 2 == 0 else reversed(ask):
            times[name].append(token_ms(server, args.model, ask[name][0], args.tokens, ask[name][1]))
        print(f"{turn + 1} of {args.rounds}: " + ", ".join(f"{name} {ms[-1]:.2f}" for name, ms in times.items()),
              file=sys.stderr, flush=True)
    time.sleep(1)
    log_seconds = {"all": server.cpu_seconds() - before[0], "writer": writer_seconds(server) - before[1]}
    return shares, times, log_seconds


def own_ms(log, tokens):
    """The time of planning and recording by watched requests, milliseconds a token."""
    budget = VARIANTS["watched"][0]["kv_budget"]
    planning, recording, requests = sqlite3.connect(log).execute(
        "select sum(policy_ms), sum(record_ms), count(distinct sequence) from steps join sequences on sequence = "
        "sequences.id where budget_share = :budget and sequence > (select min(id) from sequences where budget_share = "
        ":budget)", {"budget": budget}).fetchone()  # the first read the prompt
    return {"planning": planning / requests / tokens, "recording": recording / requests / tokens}


def paired(times, name, base):
    return spread([ours / other for ours, other in zip(times[name], times[base])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--depth", type=int, default=7900, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=129, help="of the answer")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    ids = json.loads(subprocess.run([servers.KVASIR, "tokenize", args.model, "--file", args.file, "--json"], check=True,
                                    capture_output=True, text=True).stdout)["ids"]
    with contextlib.ExitStack() as stack:
        log = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()), "log")
        server = stack.enter_context(servers.running(
            [servers.KVASIR, "serve", args.model, "--max-num-seqs", 1, "--kv-log", log,
             "--kv-cache-tokens", (len(VARIANTS) + 1) * (args.depth + args.tokens)]))
        shares, times, log_seconds = measure(args, ids[:args.depth], server, log)
        own = own_ms(log, args.tokens)
    attention = {name: spread([ours - short for ours, short in zip(times[name], times["short"])])
                 for name in VARIANTS if name != "watched"}
    report = {
        "model": args.model, "depth": args.depth, "tokens": args.tokens, "bytes_share": shares, "token_ms": times,
        "policy_and_log": paired(times, "watched", "f16"), "own_ms": own, "log_cpu_seconds": log_seconds,
        "attention_ms": attention,
        "attention_of_f16": {name: spread([ours / f16 for ours, f16 in zip(one["runs"], attention["f16"]["runs"])])
                             for name, one in attention.items() if name != "f16"}}
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(f"a token: {own['planning']:.3f} ms of planning, {own['recording']:.3f} of recording")
    print(f"the log's thread: {log_seconds['writer']:.2f} of {log_seconds['all']:.1f} s of processor time")
    lines = {"policy and log, of f16": report["policy_and_log"],
             **{f"attention over {name}, of f16": one for name, one in report["attention_of_f16"].items()},
             **{f"attention over {name}, ms": one for name, one in attention.items()}}
    for name, one in lines.items():
        print(f"{name}: {one['median']:.3f} ({one['quartiles'][0]:.3f} to {one['quartiles'][1]:.3f})")


if __name__ == "__main__":
    main()
