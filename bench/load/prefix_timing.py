"""Can a tenant tell by time what another tenant has asked? A timing attack on the prefix cache, and whether it works.

Usage: prefix_timing.py [--samples 1000] [--tokens 200] [--seed 1] [--json FILE]
Two tenants with API keys. For each sample a fair coin says whether the victim sends a fresh prompt or another one of
the same length, and the attacker times one request for the first with max_tokens 1. AUC is how often a time of a
prompt that was sent lies below one that was not: 0.5 tells nothing, 1 everything. Across tenants it must be at most
0.55; within one (a fifth of the samples; the attacker times what it sent itself, or did not) at least 0.9, or the
measurement could not see a leak. The same for one key with two values of `cache_salt`. `cached_tokens` and
kvasir_prefix_cache_hits_tokens_total must show no hit across tenants, and within a tenant only for what was sent. The
attacker's /metrics must not name the victim either: counters by tenant say how much of its prompts was cached.
With few samples AUC is noise: its standard error is 0.02 with 1,000 and 0.08 with 50.
Exit codes: 0 bars met, 1 missed, 2 no binary or no model.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import servers

BINARY = os.environ.get("KVASIR_BINARY", str(servers.KVASIR))
MODEL = "smollm2:135m"
VOCABULARY = range(300, 49_000)  # ordinary tokens of MODEL
MOST_ACROSS, LEAST_WITHIN = 0.55, 0.9
HITS = re.compile(r"^kvasir_prefix_cache_hits_tokens_total\S* (\d+)$", re.MULTILINE)


def make_key(name, file):
    made = subprocess.run([BINARY, "keys", "add", name, "--file", file, "--json"], capture_output=True, check=True)
    return json.loads(made.stdout)["key"]


@contextlib.contextmanager
def running(key_file):
    """The port of a server that asks for keys; it says itself when it is ready."""
    command = [BINARY, "serve", MODEL, "--port", "0", "--api-keys", key_file, "--ttft-target-ms", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        if not lines[1].startswith("http"):
            print(f"kvasir does not start: is the binary built and {MODEL} pulled?")
            sys.exit(2)
        yield int(lines[1].split()[0].rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class Tenant:
    """Asks on a connection of its own."""

    def __init__(self, port, key, salt=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.extra = {"cache_salt": salt} if salt else {}

    def get(self, path):
        self.connection.close()  # the server may have done so, when it was long idle
        self.connection.request("GET", path, headers=self.headers)
        return self.connection.getresponse().read().decode()

    def time_of(self, prompt):
        """Milliseconds of a request for one token, and the cached tokens it is told of."""
        body = json.dumps({"prompt": prompt, "max_tokens": 1, "temperature": 0} | self.extra)
        began = time.monotonic()
        self.connection.request("POST", "/v1/completions", body, self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        took_ms = 1000 * (time.monotonic() - began)
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {answer}")
        return took_ms, json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"]

    def cache_hits(self):
        """Cached tokens, of the whole server."""
        return int(HITS.search(self.get("/metrics"))[1])


def auc(sent_ms, unsent_ms):
    """The chance that a prompt that was sent took less time than one that was not; equal times count half."""
    ranked = sorted([(ms, 1) for ms in sent_ms] + [(ms, 0) for ms in unsent_ms])
    wins, unsent_left, place = 0.0, len(unsent_ms), 0
    while place < len(ranked):
        end = place
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            end += 1
        num_sent = sum(kind for _, kind in ranked[place:end])
        num_unsent = end - place - num_sent
        wins += num_sent * (unsent_left - num_unsent / 2)
        unsent_left -= num_unsent
        place = end
    return wins / (len(sent_ms) * len(unsent_ms))


def attack(victim, attacker, num_samples, num_tokens, rng, name):
    """AUC, and the cached tokens that the attacker and the metrics showed for sent and unsent prompts."""
    times = {True: [], False: []}
    told = {True: 0, False: 0}
    hits_at_first = attacker.cache_hits()
    for number in range(num_samples):
        prompts = [rng.choices(VOCABULARY, k=num_tokens) for _ in range(2)]
        was_sent = rng.random() < 0.5
        victim.time_of(prompts[0] if was_sent else prompts[1])
        took_ms, cached = attacker.time_of(prompts[0])
        times[was_sent].append(took_ms)
        told[was_sent] += cached
        if number % 50 == 49:
            print(f"{name}: {number + 1} of {num_samples}, AUC {auc(times[True], times[False]):.3f}", file=sys.stderr)
    time.sleep(1)  # the engine counts a step after its answers have left
    median = {kind: sorted(values)[len(values) // 2] for kind, values in times.items()}
    return {"samples": num_samples, "auc": round(auc(times[True], times[False]), 4),
            "sent_median_ms": round(median[True], 2), "unsent_median_ms": round(median[False], 2),
            "cached_tokens_of_sent": told[True], "cached_tokens_of_unsent": told[False],
            "hits_in_metrics": attacker.cache_hits() - hits_at_first}


def missed(results, others_in_metrics):
    """The bars that were not met."""
    texts = [f"the attacker's /metrics tells of the victim: {line}" for line in others_in_metrics]
    for name, result in results.items():
        is_within = name == "within"
        if result["auc"] < LEAST_WITHIN if is_within else result["auc"] > MOST_ACROSS:
            texts.append(f"{name}: AUC {result['auc']}")
        if result["cached_tokens_of_unsent"]:
            texts.append(f"{name}: cached tokens of prompts that nobody sent")
        if bool(result["cached_tokens_of_sent"]) != is_within or bool(result["hits_in_metrics"]) != is_within:
            texts.append(f"{name}: {result['cached_tokens_of_sent']} cached tokens, {result['hits_in_metrics']} hits")
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if not pathlib.Path(BINARY).is_file():
        print("no kvasir binary (KVASIR_BINARY)")
        return 2
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kvasir-timing-") as folder:
        key_file = pathlib.Path(folder) / "keys"
        keys = [make_key(name, key_file) for name in ("victim", "attacker")]
        with running(key_file) as port:
            victim, attacker = (Tenant(port, key) for key in keys)
            salted = [Tenant(port, keys[0], salt) for salt in ("red", "blue")]
            pairs = {"within": (attacker, attacker, max(10, options.samples // 5)),
                     "across_keys": (victim, attacker, options.samples),
                     "across_salts": (*salted, options.samples)}
            results = {name: attack(sender, asker, count, options.tokens, rng, name)
                       for name, (sender, asker, count) in pairs.items()}
            others_in_metrics = [line for line in attacker.get("/metrics").splitlines()
                                 if 'tenant="victim"' in line and line.startswith("kvasir_cost_cached_tokens")]
    failures = missed(results, others_in_metrics)
    document = {"prompt_tokens": options.tokens, "attacks": results, "missed": failures}
    print(json.dumps(document, indent=2))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
