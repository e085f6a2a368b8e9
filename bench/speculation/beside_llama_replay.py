#!/usr/bin/env python3
"""Gains at a chosen acceptance, here and in llama.cpp, in one run: known answers are guessed, each token right with --accept.

Here `kvasir bench --replay-accept`, there llama-server's synthetic acceptance with a draft model of one small layer. Both
generate --gen tokens greedily, one stream, in turn. llama-server's best number of guesses counts.

Usage: beside_llama_replay.py MODEL DRAFT [--accept P] [--gen N] [--rounds N] [--out FILE]
  MODEL, DRAFT: .gguf files with the same tokens (scripts/make_tiny_model.py makes such of any shape)
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import beside_llama
import compare


class SyntheticServer(beside_llama.LlamaServer):
    def __init__(self, model, draft, accept, num_guesses):
        way = "none" if num_guesses == 0 else f"draft-simple {num_guesses}"
        rates = ",".join(f"{accept ** (i + 1):.6f}" for i in range(num_guesses))
        beside_llama.WAYS[way] = [] if num_guesses == 0 else ["-md", draft, "--spec-draft-n-max", str(num_guesses), "--spec-synth-rates", rates]
        super().__init__(model, way)


def kvasir_rates(model, accept, num_tokens):
    words = [compare.KVASIR, "bench", model, "--prompt", "0", "--gen", str(num_tokens), "--repeat", "3", "--speculate", "off,auto",
             "--replay-accept", str(accept), "--json", "--quiet"]
    results = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["results"]
    return {row["speculate"]: row["tokens_per_s"]["median"] for row in results}


def llama_rate(server, num_tokens):
    job = {"prompt": "a b c d", "ignore_eos": True}
    rates = []
    for _ in range(3):
        _, tokens, seconds = server.answer(job, "", num_tokens, 0.0, 7)
        rates.append((tokens - 1) / seconds)
    return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("draft")
    parser.add_argument("--accept", type=float, default=0.8)
    parser.add_argument("--gen", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--guesses", default="1,2,3,5,7")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    counts = [0, *map(int, arguments.guesses.split(","))]
    rows = []
    for turn in range(arguments.rounds):
        rates = {f"kvasir {way}": rate for way, rate in kvasir_rates(arguments.model, arguments.accept, arguments.gen).items()}
        for count in counts:
            server = SyntheticServer(arguments.model, arguments.draft, arguments.accept, count)
            try:
                rates[f"llama.cpp {count}"] = llama_rate(server, arguments.gen)
            finally:
                server.stop()
        rows.append(rates)
        print(turn, {name: round(rate, 1) for name, rate in rates.items()}, flush=True)
    medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    theirs = max((name for name in medians if name.startswith("llama")), key=medians.get)
    off = medians["kvasir off"] / medians["llama.cpp 0"]
    summary = {"accept": arguments.accept, "best_of_llama": theirs, "gain": round(medians["kvasir auto"] / medians["kvasir off"], 3),
               "gain_of_llama": round(medians[theirs] / medians["llama.cpp 0"], 3), "ratio_off": round(off, 3),
               "ratio_best": round(medians["kvasir auto"] / medians[theirs], 3),
               "ratio_of_ratios": round(medians["kvasir auto"] / medians[theirs] / off, 3)}
    print(summary)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": pathlib.Path(arguments.model).name, "summary": summary, "rows": rows},
                                                          indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
