#!/usr/bin/env python3
"""Three models in one server: several_models.py [--seconds 600] [--memory-gib 2] [--rounds 5] [--parts load,alone,switch]

- load: chats, completions and embeddings come at random for --seconds. Bars: no request fails; the peak memory is at
  most the plan (--memory-gib) and 3%.
- alone: the first model's tokens per second with 4 streams, in a server of its own and in one where the others are
  loaded too, in turn. Bar: the medians over --rounds differ by at most 2%.
- switch: with room for one model, the first token of a model that is not loaded. Bar: its load and 0.2 s more than
  that of a loaded one.

Exit codes: 0 all held, 1 not.
"""
import argparse
import concurrent.futures
import http.client
import json
import random
import statistics
import sys
import threading
import time

import servers

CHAT, BASE, ENCODER = MODELS = ("smollm2:135m", "gemma3:270m", "all-minilm:22m")
PLAN_SLACK, ALONE_SLACK, SWITCH_SLACK_S = 1.03, 0.02, 0.2
STREAMS, ANSWER_TOKENS = 4, 128


def ask(port, path, body, method="POST"):
    """The status and the answer's JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def words(rng, count):
    return " ".join(rng.choice("river mill bridge stone water light field road house tree".split()) for _ in range(count))


def body_for(model, rng, num_tokens=None, num_words=None):
    num_tokens, num_words = num_tokens or rng.randint(8, 64), num_words or rng.randint(4, 300)
    if model == ENCODER:
        return "/v1/embeddings", {"model": model, "input": [words(rng, 1 + num_words // 4) for _ in range(4)]}
    if model == CHAT:
        return "/v1/chat/completions", {"model": model, "max_tokens": num_tokens, "ignore_eos": True,
                                        "messages": [{"role": "user", "content": words(rng, num_words)}]}
    return "/v1/completions", {"model": model, "prompt": words(rng, num_words), "max_tokens": num_tokens,
                               "ignore_eos": True}


def command_for(models, args, *flags):
    return [servers.KVASIR, "serve", *models, "--max-num-seqs", servers.SLOTS, "--memory", f"{args.memory_gib}GiB", *flags]


def ask_for_tokens(port, path, body):
    """Ends the program unless the answer is whole: a refused one would be the fastest."""
    status, answer = ask(port, path, body)
    if status != 200 or answer["usage"]["completion_tokens"] != body["max_tokens"]:
        sys.exit(f"{path}: {status} {str(answer)[:300]}")


def under_load(args):
    wrong, counts, lock = [], dict.fromkeys(MODELS, 0), threading.Lock()
    end = time.monotonic() + args.seconds

    def user(number):
        rng = random.Random(number)
        model = MODELS[number % len(MODELS)]
        while time.monotonic() < end:
            status, answer = ask(server.port, *body_for(model, rng))
            with lock:
                counts[model] += 1
                if status != 200:
                    wrong.append((model, status, str(answer)[:200]))
            time.sleep(rng.expovariate(2))

    with servers.running(command_for(MODELS, args)) as server:
        users = [threading.Thread(target=user, args=(number,)) for number in range(3 * len(MODELS))]
        for thread in users:
            thread.start()
        while time.monotonic() < end:
            time.sleep(min(30, max(0.1, end - time.monotonic())))
            print(f"{counts}, {len(wrong)} failed, peak {server.peak_bytes() / 2**20:.0f} MiB", file=sys.stderr, flush=True)
        for thread in users:
            thread.join()
        peak = server.peak_bytes()
    plan = args.memory_gib * 2**30
    for failed in wrong[:3]:
        print(f"failed: {failed}", file=sys.stderr)
    return [("requests that failed", len(wrong), 0, not wrong and all(counts.values())),
            ("peak memory, of the plan", peak / plan, PLAN_SLACK, peak <= PLAN_SLACK * plan)]


def tokens_per_s(server, seed):
    rng = random.Random(seed)
    bodies = [body_for(CHAT, rng, ANSWER_TOKENS) for _ in range(STREAMS)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(lambda body: ask_for_tokens(server.port, *body), bodies))
    return STREAMS * ANSWER_TOKENS / (time.monotonic() - begin)


def alone(args):
    rates = {1: [], len(MODELS): []}
    with servers.running(command_for(MODELS[:1], args)) as one:
        with servers.running(command_for(MODELS, args)) as several:
            for model in MODELS:
                first_token_s(several, model)
            for turn in range(-1, args.rounds):
                for count, server in ((1, one), (len(MODELS), several)):
                    rate = tokens_per_s(server, turn)
                    if turn >= 0:
                        rates[count].append(rate)
    medians = {count: statistics.median(found) for count, found in rates.items()}
    print(json.dumps({count: [round(rate, 1) for rate in found] for count, found in rates.items()}), file=sys.stderr)
    ratio = medians[len(MODELS)] / medians[1]
    return [("tokens/s beside others that idle, of a server of its own", ratio, 1 - ALONE_SLACK, ratio >= 1 - ALONE_SLACK)]


def first_token_s(server, model):
    path, body = body_for(model, random.Random(1), 1, 4)
    begin = time.monotonic()
    status, answer = ask(server.port, path, body)
    if status != 200:
        sys.exit(f"{model}: {status} {answer}")
    return time.monotonic() - begin


def switch(args):
    rows = []
    with servers.running(command_for(MODELS, args, "--max-loaded-models", 1)) as server:
        for turn in range(args.rounds):
            for model in MODELS[1:] + MODELS[:1]:
                cold = first_token_s(server, model)
                warm = first_token_s(server, model)
                loaded = [row for row in ask(server.port, "/v1/ps", None, "GET")[1] if row["state"] == "loaded"]
                rows.append((model, cold - warm - loaded[0]["load_ms"] / 1000))
                print(f"{model}: cold {cold:.3f} s, warm {warm:.3f} s, load {loaded[0]['load_ms'] / 1000:.3f} s", file=sys.stderr)
    worst = max(statistics.median(late for name, late in rows if name == model) for model in MODELS)
    return [("first token of a cold model behind its load, s (worst model's median)", worst, SWITCH_SLACK_S,
             worst <= SWITCH_SLACK_S)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--memory-gib", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="load,alone,switch")
    args = parser.parse_args()
    servers.require(servers.KVASIR)
    parts = {"load": under_load, "alone": alone, "switch": switch}
    bars = [bar for part in args.parts.split(",") for bar in parts[part](args)]
    for name, value, bar, has_held in bars:
        print(f"{name}: {value:.3f} (bar {bar}) {'held' if has_held else 'MISSED'}")
    return 0 if all(bar[3] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
