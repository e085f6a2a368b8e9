#!/usr/bin/env python3
"""What `kvasir plan` says beside the peak memory of `serve`: plan_peak.py MODEL[=CONTEXT,CONTEXT...]... [--users 1,4]

For each model, context and number of users: the plan's total, and VmHWM of a server that has the plan's --ctx and
--max-num-seqs after as many requests of random tokens, all at once, have filled their contexts. Each server is a new
process. Exit code 1: some plan is further than --bar (3) percent from the peak.

    bench/plan_peak.py smollm2:135m gemma3:270m all-minilm:22m=64,128,256 shape.gguf --users 1,4
"""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "load"))
import servers  # noqa: E402

CONTEXTS = (512, 2048, 4096)
ANSWER_TOKENS = 8
QUIET_S = 3.0  # an idle engine brings its tables in


def ask(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1800)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status} {text}")
    return json.loads(text)


def fill(server, is_encoder, context, users, vocab):
    """One request of each user, that ends where its context does."""
    rng = random.Random(1)
    def one(_):
        prompt = [rng.randrange(vocab) for _ in range(context if is_encoder else context - ANSWER_TOKENS)]
        if is_encoder:
            return ask(server.port, "/v1/embeddings", {"input": [prompt]})
        return ask(server.port, "/v1/completions", {"prompt": prompt, "max_tokens": ANSWER_TOKENS, "ignore_eos": True,
                                                    "temperature": 0})
    with concurrent.futures.ThreadPoolExecutor(users) as pool:
        list(pool.map(one, range(users)))


def settled_peak(server):
    peak, since = server.peak_bytes(), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        time.sleep(0.25)
        if server.peak_bytes() > peak:
            peak, since = server.peak_bytes(), time.monotonic()
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--users", default="1,4")
    parser.add_argument("--bar", type=float, default=3.0, help="percent")
    parser.add_argument("--kvasir", type=pathlib.Path, default=servers.KVASIR)
    arguments = parser.parse_args()
    servers.require(arguments.kvasir)

    def told(*words):
        done = subprocess.run([arguments.kvasir, *map(str, words), "--json"], capture_output=True, text=True)
        if not done.stdout:
            sys.exit(f"{words}: {done.stderr}")
        return json.loads(done.stdout)

    print("| model | context | users | plan, MiB | peak, MiB | plan to peak |\n|---|---|---|---|---|---|")
    furthest = 0.0
    for argument in arguments.models:
        model, _, contexts = argument.partition("=")
        facts = told("show", model)[0]
        is_encoder = facts["architecture"].endswith("bert") or "embedding" in facts["architecture"]
        for context in map(int, contexts.split(",") if contexts else CONTEXTS):
            for users in map(int, arguments.users.split(",")):
                plan = told("plan", model, "--context", context, "--users", users)
                command = [arguments.kvasir, "serve", model, "--ctx", context, "--max-num-seqs", users]
                with servers.running(command) as server:
                    fill(server, is_encoder, context, users, 20_000)
                    peak = settled_peak(server)
                off = 100 * (plan["total_bytes"] / peak - 1)
                furthest = max(furthest, abs(off))
                print(f"| {pathlib.Path(model).name} | {context} | {users} | {plan['total_bytes'] / 2**20:.1f} | "
                      f"{peak / 2**20:.1f} | {off:+.1f}% |", flush=True)
    print(f"\nthe furthest is {furthest:.1f}% off, the bar is {arguments.bar:g}%")
    return 1 if furthest > arguments.bar else 0


if __name__ == "__main__":
    sys.exit(main())
