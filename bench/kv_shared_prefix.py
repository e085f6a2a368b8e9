#!/usr/bin/env python3
"""A budget behind a prefix that an exact request has cached: kv_shared_prefix.py MODEL --file TEXT [--out FILE]

One server. Each round is under a cache_salt of its own: a request with a KV budget comes first, or behind an exact one
with the same system prompt and another question. Both kinds take turns (A B B A ...). Checked: both answers are equal in
every token and every log-probability. Reported: milliseconds to the first token, and how many tokens were cached.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "load"))
import http.client  # noqa: E402

import servers  # noqa: E402


def ask(server, model, prompt, tokens, salt, fields):
    """Milliseconds to the first token, the answer with its log-probabilities, and the tokens that were cached."""
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
            "logprobs": 1, "stream_options": {"include_usage": True}, "cache_salt": salt, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    start = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"{fields}: {answer.status} {answer.read().decode()}")
    first_ms, said, usage = None, [], None
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        for choice in event.get("choices", []):
            first_ms = first_ms or 1000 * (time.monotonic() - start)
            said.append((choice["text"], (choice.get("logprobs") or {}).get("token_logprobs")))
    return first_ms, said, usage["prompt_tokens_details"]["cached_tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--binary", type=pathlib.Path, default=servers.KVASIR)
    parser.add_argument("--shared-tokens", type=int, default=1500)
    parser.add_argument("--own-tokens", type=int, default=100)
    parser.add_argument("--answer-tokens", type=int, default=64)
    parser.add_argument("--policy", default="ladder")
    parser.add_argument("--budgets", default="0.2,0.3,0.5")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    ids = json.loads(subprocess.run([args.binary, "tokenize", args.model, "--file", args.file, "--json"], check=True,
                                    capture_output=True, text=True).stdout)["ids"]
    system, rest = ids[:args.shared_tokens], ids[args.shared_tokens:]
    questions = [rest[i * args.own_tokens:(i + 1) * args.own_tokens] for i in range(2 * args.rounds)]
    report = {"model": args.model, "policy": args.policy, "shared_tokens": args.shared_tokens, "own_tokens": args.own_tokens}
    with servers.running([args.binary, "serve", args.model, "--any-model-name"]) as server:
        for budget in [float(text) for text in args.budgets.split(",")]:
            fields = {"kv_policy": args.policy, "kv_budget": budget, "kv_quality": "best_effort"}
            ask(server, args.model, rest[-600:], 1, "warm", fields)  # from here on attention is kept
            times, cached = {"first": [], "behind": []}, set()
            for number in range(args.rounds):
                prompt, said = system + questions[2 * number], {}
                for arm in ["first", "behind"] if number % 2 == 0 else ["behind", "first"]:
                    salt = f"{budget} {number} {arm}"
                    if arm == "behind":
                        ask(server, args.model, system + questions[2 * number + 1], 1, salt, {"kv_policy": "none"})
                    first_ms, said[arm], num_cached = ask(server, args.model, prompt, args.answer_tokens, salt, fields)
                    times[arm].append(first_ms)
                    if (num_cached > 0) != (arm == "behind"):
                        sys.exit(f"{num_cached} tokens were cached, {arm}")
                    cached.add(num_cached)
                if said["first"] != said["behind"]:
                    sys.exit(f"budget {budget}, round {number}: the answers differ")
            medians = {arm: statistics.median(ms) for arm, ms in times.items()}
            report[str(budget)] = {"cached_tokens": max(cached), "ttft_ms": times, "medians": medians,
                                   "ratio": medians["behind"] / medians["first"]}
            print(budget, f"{max(cached)} tokens cached", {arm: [round(min(ms)), round(statistics.median(ms)), round(max(ms))]
                          for arm, ms in times.items()}, flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
