#!/usr/bin/env python3
"""A server that learns its forecast from requests: learning.py kvasir MODEL --file TEXT --what promotion|latency

promotion  requests one by one until a forecast is promoted: how many, how many of them keep all of their KV, what the file has
latency    servers without and with --kv-learn, in turn and each alone: times of whole requests, and the learner's processor time
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time
import urllib.request

LOWEST_PRIORITY = 19


class Served:
    """A server of ladder-learned, for a while."""

    def __init__(self, given, *flags):
        self.given = given
        self.process = subprocess.Popen([given.binary, "serve", given.model, "--port", "0", "--kv-policy", "ladder-learned", "--kv-budget", "0.25",
                                         "--kv-quality", "best_effort", "--chunk", str(given.chunk), *flags], stdout=subprocess.PIPE, text=True)
        self.url = [self.process.stdout.readline() for _ in range(3)][1].split()[0]
        self.began, self.learner_began = time.monotonic(), self.seconds_of_learner()

    def close(self):
        self.process.terminate()
        self.process.wait(60)

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}), timeout=600) as answer:
            return json.loads(answer.read())

    def complete(self, prompt):
        return self.call("/v1/completions", {"prompt": prompt, "max_tokens": self.given.tokens, "ignore_eos": True})["usage"]

    def learning(self):
        [learning] = [row["learning"] for row in self.call("/v1/kv_policies") if "learning" in row]
        return learning

    def seconds_of_learner(self):
        """Processor seconds of its thread of the lowest priority."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[16]) == LOWEST_PRIORITY:
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def learner_share(self):
        """Of all processors' time since it began."""
        return (self.seconds_of_learner() - self.learner_began) / (time.monotonic() - self.began) / os.cpu_count()


def prompts_of(given, seed):
    text, places = pathlib.Path(given.file).read_text(errors="ignore"), random.Random(seed)
    while True:
        at = places.randrange(len(text) - given.characters)
        yield text[at:at + given.characters]


def learning_flags(given, folder):
    return ("--kv-learn", f"{folder}/learned.json", "--kv-shadow-share", str(given.share), "--kv-learn-cpu", str(given.cpu))


def promotion(given):
    shadows, shares, learning = 0, [], {"promotions": 0}
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Served(given, *learning_flags(given, folder))) as server:
        for prompt in prompts_of(given, given.seed):
            if shadows + len(shares) >= given.requests or learning["promotions"] > 0:
                break
            usage = server.complete(prompt)
            shadows += usage.get("kv_shadow", False)
            if "kv_shadow" not in usage:
                shares.append(usage["kv"]["share"])
            learning = server.learning()
        file = pathlib.Path(folder, "learned.json")
        kept = json.loads(file.read_text()) if file.exists() else {}
        if given.out and kept:
            pathlib.Path(given.out).write_text(json.dumps(kept))
        print(json.dumps({"requests": shadows + len(shares), "shadows": shadows, "other_share_mean": sum(shares) / max(1, len(shares)),
                          "seconds": round(time.monotonic() - server.began), "learner_cpu_share": round(server.learner_share(), 4), **learning,
                          "file": kept.get("kv_learned")}))


def latency(given):
    of_kind = {"without": [], "with": []}
    learner = []
    for turn in range(given.turns):
        for kind, times in of_kind.items():
            with tempfile.TemporaryDirectory() as folder:
                flags = learning_flags(given, folder) if kind == "with" else ()
                with contextlib.closing(Served(given, *flags)) as server:
                    prompts = prompts_of(given, f"{given.seed} {turn}")  # the same of both kinds
                    server.complete(next(prompts))
                    ms = []
                    for _ in range(given.requests):
                        prompt, began = next(prompts), time.monotonic()
                        server.complete(prompt)
                        ms.append(1000 * (time.monotonic() - began))
                    times.append(ms)
                    if kind == "with":
                        learner.append(server.learner_share())
    for kind, times in of_kind.items():
        every = sorted(ms for turn in times for ms in turn)
        medians = [statistics.median(turn) for turn in times]
        print(json.dumps({"kv_learn": kind, "requests": len(every), "p50_ms": round(statistics.median(every), 1),
                          "p99_ms": round(every[len(every) * 99 // 100], 1), "p50_of_turns_ms": [round(ms, 1) for ms in medians],
                          "p99_of_turns_ms": [round(sorted(turn)[len(turn) * 99 // 100], 1) for turn in times]}))
    print(json.dumps({"learner_cpu_share": [round(share, 4) for share in learner]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="prompts are pieces of this text")
    parser.add_argument("--what", choices=["promotion", "latency"], default="promotion")
    parser.add_argument("--requests", type=int, default=40, help="at most, or of each turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--cpu", type=float, default=0.01, help="of all processors' time, at most, that learning may take")
    parser.add_argument("--characters", type=int, default=3600, help="of a prompt")
    parser.add_argument("--tokens", type=int, default=16, help="of an answer")
    parser.add_argument("--chunk", type=int, default=32, help="most tokens of a prompt in a step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="what the file of --kv-learn has, for a later --kv-forecast")
    given = parser.parse_args()
    promotion(given) if given.what == "promotion" else latency(given)


if __name__ == "__main__":
    main()
