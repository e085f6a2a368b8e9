#!/usr/bin/env python3
"""Gains by guessed tokens, here and in llama.cpp, in one run: the servers play the same prompts in turn, one stream, greedy.

Each of llama-server's ways to guess is played; its best one counts. Servers start anew for each round, for some of its ways
remember answers of all clients. A rate is of tokens from the first to the last of each
answer. The ratio of ratios is our rate over theirs with both at their best, over the same with both off.

Usage: beside_llama.py MODEL --workload FILE [--kinds LIST] [--rounds N] [--max-tokens N] [--out FILE]
  MODEL: a .gguf file; llama-server lies in build/peers (bench/peers/install.sh)
"""
import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

import compare

LLAMA = compare.ROOT / "build/peers/bin/llama-native/llama-server"
# Its own sizes want a match of 12 tokens or 24, so each way is tried with short ones too.
WAYS = {"none": [], "ngram-simple": [], "ngram-simple 3": ["--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8"],
        "ngram-map-k 3": ["--spec-ngram-map-k-size-n", "3", "--spec-ngram-map-k-size-m", "8"], "ngram-map-k": [],
        "ngram-mod": ["--spec-ngram-mod-n-match", "4", "--spec-ngram-mod-n-min", "2", "--spec-ngram-mod-n-max", "8"], "ngram-cache": []}


class LlamaServer(compare.Server):
    def __init__(self, model, way):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([LLAMA, "-m", model, "--port", str(self.port), "-np", "1", "-c", "4096", "-t", "2", "--no-warmup",
                                         "--cache-ram", "0", "--spec-type", way.split()[0], *WAYS[way]],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5)
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"llama-server with {way} did not start")
                time.sleep(0.1)
        raise SystemExit(f"llama-server with {way} did not start")


def rate(server, jobs, salt, max_tokens):
    answers = [server.answer(job, salt, max_tokens, 0.0, 7) for job in jobs]
    return sum(answer[1] - 1 for answer in answers) / sum(answer[2] for answer in answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--workload", required=True)
    parser.add_argument("--kinds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=120)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    jobs = [job for job in map(json.loads, open(arguments.workload)) if "response_format" not in job]
    kinds = arguments.kinds.split(",") if arguments.kinds else sorted({job["kind"] for job in jobs})
    rows = []
    for turn in range(arguments.rounds):
        servers = {}
        try:
            servers |= {f"kvasir {way}": compare.Server(arguments.model, way, 1) for way in ("off", "auto")}
            servers |= {f"llama.cpp {way}": LlamaServer(arguments.model, way) for way in WAYS}
            for kind in kinds:
                names = list(servers) if turn % 2 == 0 else list(servers)[::-1]
                of_kind = [job for job in jobs if job["kind"] == kind]
                rates = {name: rate(servers[name], of_kind, f"round {turn}", arguments.max_tokens) for name in names}
                rows.append({"kind": kind, "turn": turn, "tokens_per_s": rates})
                print(kind, turn, {name: round(value, 1) for name, value in rates.items()}, flush=True)
        finally:
            for server in servers.values():
                server.stop()
    summary = {}
    for kind in kinds:
        medians = {name: statistics.median(row["tokens_per_s"][name] for row in rows if row["kind"] == kind) for name in servers}
        theirs = max((name for name in medians if name.startswith("llama")), key=medians.get)
        ours = max(medians["kvasir off"], medians["kvasir auto"])
        off = medians["kvasir off"] / medians["llama.cpp none"]
        summary[kind] = {"best_of_llama": theirs, "ratio_off": round(off, 3), "ratio_best": round(ours / medians[theirs], 3),
                         "ratio_of_ratios": round(ours / medians[theirs] / off, 3),
                         "gain": round(medians["kvasir auto"] / medians["kvasir off"], 3),
                         "gain_of_llama": round(medians[theirs] / medians["llama.cpp none"], 3)}
        print(kind, summary[kind])
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": pathlib.Path(arguments.model).name, "summary": summary, "rows": rows},
                                                          indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
