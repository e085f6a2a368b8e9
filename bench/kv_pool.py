#!/usr/bin/env python3
"""As many sequences in a KV pool of 30% of the bytes: kv_pool.py MODEL --file TEXT [--out FILE]

Starts `kvasir serve` with a pool that holds every sequence as computed, and with one of a share of it and a
KV budget, in turn (A B B A ...). So many clients at once each send a prompt of their own from TEXT and read a
streamed answer. Reported are what the server's metrics say: sequences that ran at once, bytes of KV at most,
preemptions, and tokens of answers and of prompts per second of the whole.
"""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "load"))
import servers  # noqa: E402


def command(args, flags):
    return [args.binary, "serve", args.model, "--max-num-seqs", args.clients, "--max-model-len",
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
    return [ids[i * args.prompt_tokens:(i + 1) * args.prompt_tokens] for i in range(args.clients)]


def measure(args, prompts, flags, fields):
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
        with concurrent.futures.ThreadPoolExecutor(args.clients + 1) as threads:
            watcher = threads.submit(watch)
            start = time.monotonic()
            try:
                list(threads.map(complete, prompts))  # raises what a client met
            finally:
                done.set()
            seconds = time.monotonic() - start
            watcher.result()
        end = metrics(server)
    if end["kvasir_generation_tokens_total"] != args.clients * args.answer_tokens:
        sys.exit(f"{end['kvasir_generation_tokens_total']} tokens came, {args.clients * args.answer_tokens} were asked for")
    return {"pool_bytes": end["kvasir_kv_bytes"], "most_running": most["running"], "most_bytes": most["bytes"],
            "preemptions": end["kvasir_preemptions_total"], "seconds": seconds,
            "answer_tokens_per_s": args.clients * args.answer_tokens / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--binary", default=str(servers.KVASIR))
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--prompt-tokens", type=int, default=1920)
    parser.add_argument("--answer-tokens", type=int, default=128)
    parser.add_argument("--pool", type=float, default=0.3, help="share of the full pool")
    parser.add_argument("--budget", type=float, default=0.25, help="kv_budget of the requests in the small pool")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    prompts = prompts_of(args)
    tokens = args.clients * (args.prompt_tokens + args.answer_tokens)
    full = (["--kv-cache-tokens", str(tokens)], {})
    small = (["--kv-cache-tokens", str(int(args.pool * tokens))], {"kv_budget": args.budget})
    runs = {"full": [], "small": []}
    for pair in range(args.pairs):
        order = [("full", full), ("small", small)]
        for name, (flags, fields) in order if pair % 2 == 0 else order[::-1]:
            runs[name].append(measure(args, prompts, flags, fields))
            print(name, json.dumps(runs[name][-1]), file=sys.stderr, flush=True)
    ratios = [small["answer_tokens_per_s"] / full["answer_tokens_per_s"]
              for full, small in zip(runs["full"], runs["small"])]
    report = {"model": args.model, "clients": args.clients, "prompt_tokens": args.prompt_tokens,
              "answer_tokens": args.answer_tokens, "budget": args.budget, "runs": runs,
              "throughput_ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}}
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["throughput_ratio"]))


if __name__ == "__main__":
    main()
