#!/usr/bin/env python3
"""Sequences in a KV pool, in f16 and with a budget: kv_pool.py MODEL --file TEXT [--out FILE]

Starts `kvasir serve --kv-type f16` with a pool that holds --clients sequences, and one with a share of its bytes whose
requests have a KV budget, in turn (A B B A ...). --requests clients at once each send a prompt of their own from TEXT.
Reported are what the servers' metrics say: sequences that ran at once, bytes of KV at most, preemptions, and tokens of
answers per second of the whole, and processor time of the servers, which other work on the machine hardly moves.

By default the pool is 30% and the requests are as many as fit in f16. `--pool 1 --requests 40` asks how many more run at
once in the same bytes.
"""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "load"))
import servers  # noqa: E402


def command(args, flags):
    return [args.binary, "serve", args.model, "--any-model-name", "--max-num-seqs", args.requests, "--max-model-len",
            args.prompt_tokens + args.answer_tokens, "--no-prefix-cache",
            "--max-step-ms", 0, *flags]  # prompts first, so that all sequences are there at once


def ask(server, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {text}")
    return text


def metrics(server):
    lines = [line for line in ask(server, "GET", "/metrics").splitlines() if not line.startswith("#")]
    return {line.split("{")[0].split(" ")[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def prompts_of(args):
    """Token ids, so that every prompt has just so many."""
    ids = json.loads(subprocess.run([args.binary, "tokenize", args.model, "--file", args.file, "--json"], check=True,
                                    capture_output=True, text=True).stdout)["ids"]
    starts = [i * args.prompt_tokens % (len(ids) - args.prompt_tokens) for i in range(args.requests)]
    return [ids[start:start + args.prompt_tokens] for start in starts]


def pool_bytes(args, flags):
    with servers.running(command(args, flags)) as server:
        return metrics(server)["kvasir_kv_bytes"]


def cpu_seconds():
    """Of servers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(args, prompts, flags, fields):
    cpu_before = cpu_seconds()
    most = {"running": 0.0, "bytes": 0.0}
    done = threading.Event()

    def watch():
        while not done.is_set():
            now = metrics(server)
            most["running"] = max(most["running"], now["kvasir_requests_running"])
            most["bytes"] = max(most["bytes"], now["kvasir_kv_bytes_used"])
            time.sleep(0.05)

    def complete(prompt):
        ask(server, "POST", "/v1/completions", {
            "model": args.model, "prompt": prompt, "max_tokens": args.answer_tokens, "temperature": 0, "ignore_eos": True,
            **fields})

    with servers.running(command(args, flags)) as server:
        with concurrent.futures.ThreadPoolExecutor(args.requests + 1) as threads:
            watcher = threads.submit(watch)
            start = time.monotonic()
            try:
                list(threads.map(complete, prompts))  # raises what a client met
            finally:
                done.set()
            seconds = time.monotonic() - start
            watcher.result()
        end = metrics(server)
    if end["kvasir_generation_tokens_total"] != args.requests * args.answer_tokens:
        sys.exit(f"{end['kvasir_generation_tokens_total']} tokens came, {args.requests * args.answer_tokens} were asked for")
    return {"pool_bytes": end["kvasir_kv_bytes"], "most_running": most["running"], "most_bytes": most["bytes"],
            "preemptions": end["kvasir_preemptions_total"], "seconds": seconds,
            "cpu_seconds": cpu_seconds() - cpu_before,
            "answer_tokens_per_s": args.requests * args.answer_tokens / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--binary", type=pathlib.Path, default=servers.KVASIR)
    parser.add_argument("--clients", type=int, default=16, help="sequences that the pool holds in f16")
    parser.add_argument("--requests", type=int, default=0, help="at once to both servers (0: as many)")
    parser.add_argument("--prompt-tokens", type=int, default=1920)
    parser.add_argument("--answer-tokens", type=int, default=128)
    parser.add_argument("--pool", type=float, default=0.3, help="share of the full pool")
    parser.add_argument("--budget", type=float, default=0.25, help="kv_budget of the requests in the small pool")
    parser.add_argument("--policy", default="ladder")
    parser.add_argument("--quality", default="gate")
    parser.add_argument("--flags", default="", help="more flags of the server with a budget")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    args.requests = args.requests or args.clients
    prompts = prompts_of(args)
    tokens = args.clients * (args.prompt_tokens + args.answer_tokens)
    full = (["--kv-type", "f16", "--kv-cache-tokens", str(tokens)], {})
    as_computed = pool_bytes(args, full[0]) / pool_bytes(args, ["--kv-cache-tokens", str(tokens)])
    small = (["--kv-cache-tokens", str(int(args.pool * as_computed * tokens)), *args.flags.split()],
             {"kv_policy": args.policy, "kv_budget": args.budget, "kv_quality": args.quality})
    runs = {"full": [], "small": []}
    for pair in range(args.pairs):
        order = [("full", full), ("small", small)]
        for name, (flags, fields) in order if pair % 2 == 0 else order[::-1]:
            runs[name].append(measure(args, prompts, flags, fields))
            print(name, json.dumps(runs[name][-1]), file=sys.stderr, flush=True)
    ratios = [small["answer_tokens_per_s"] / full["answer_tokens_per_s"]
              for full, small in zip(runs["full"], runs["small"])]
    report = {"model": args.model, "clients": args.clients, "prompt_tokens": args.prompt_tokens,
              "answer_tokens": args.answer_tokens, "budget": args.budget, "policy": args.policy,
              "quality": args.quality, "requests": args.requests, "pool": args.pool, "runs": runs,
              "throughput_ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}}
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["throughput_ratio"]))


if __name__ == "__main__":
    main()
