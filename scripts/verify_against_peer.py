#!/usr/bin/env python3
"""Holds Kvasir against llama.cpp on the catalogue's models: token ids, closeness to the exact model, perplexity,
tiny models, speed.

Needs bench/peers/install.sh once, the two models (kvasir pull), and WikiText-2's test text (--text). Prints one line a
claim with the figure, the limit and the verdict; exit code 1 when one does not hold. About 20 minutes; --only picks.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "peers"))
from compare import Watch, compare  # noqa: E402
from programs import Cell, Kvasir, LlamaCpp  # noqa: E402

PEERS = ROOT / "build" / "peers"
KVASIR = str(ROOT / "build" / "release" / "bin" / "kvasir")
MODELS = ("smollm2:135m", "gemma3:270m")
THREADS = "2"
ENVIRONMENT = os.environ | {"LLAMA_CPP_LIB_PATH": str(PEERS / "bin" / "llama-native"), "PYTHONPATH": str(PEERS)}


def output_of(*command, may_say_no=False):
    """The command's output; ends the run when it fails. Exit code 1 is an answer where `may_say_no`."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0 and not (may_say_no and done.returncode == 1):
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr


def script(name, *args, may_say_no=False):
    return output_of(PEERS / "venv" / "bin" / "python", ROOT / "scripts" / name, *args, may_say_no=may_say_no)


def kvasir_json(*args):
    done = subprocess.run([KVASIR, *map(str, args), "--json", "--quiet"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Verdicts:
    def __init__(self):
        self.failed = 0

    def add(self, claim, value, limit, holds):
        self.failed += not holds
        print(f"{'holds' if holds else 'FAILS'}  {claim}: {value} (limit {limit})", flush=True)

    def at_most(self, claim, value, limit):
        self.add(claim, f"{value:.4g}", f"{limit:.4g}", value <= limit)


class Model:
    """A model of the store, and what the comparisons keep of it in build/peers."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.path = kvasir_json("show", name)[0]["path"]
        self.wide = PEERS / (name.replace(":", "-") + ".f32.gguf")
        if not self.wide.exists():
            script("widen_gguf.py", self.path, self.wide)

    def logits_of_peer(self, path, *flags):
        out = PEERS / "peer.npy"
        script("peer_logits.py", path, "--file", self.text, "--out", out, "--threads", THREADS, *flags)
        return out

    def logits_of_kvasir(self, path, *flags):
        out = PEERS / "kvasir.npy"
        kvasir_json("eval", "logits", path, "--file", self.text, "--ctx", 512, "--tokens", 2048, "--out", out,
                    "--threads", THREADS, *flags)
        return out


def check_tokens(model, verdicts):
    stress = ROOT / "tests" / "cases" / "tokenizer" / "stress.txt"
    lines = script("compare_tokenizer.py", model.path, model.text, stress, "--kvasir", KVASIR,
                   may_say_no=True).splitlines()
    # Gemma's stress text has tags and marks of spaces that llama.cpp reads otherwise than tokenizer.json (docs/GGUF.md).
    least = 2 if model.name.startswith("gemma") else 4
    equal = int(lines[-1].split()[0])
    verdicts.add(f"{model.name}: texts with equal token ids", equal, least, equal >= least)


def check_closeness(model, verdicts):
    exact = PEERS / "exact.npy"
    model.logits_of_peer(model.wide, "--kv-f32").rename(exact)
    compare_logits = lambda other: json.loads(script("compare_logits.py", exact, other))
    peer = compare_logits(model.logits_of_peer(model.path))
    ours = compare_logits(model.logits_of_kvasir(model.path))
    wide = compare_logits(model.logits_of_kvasir(model.wide, "--kv-type", "f32"))
    verdicts.at_most(f"{model.name}: mean KL from the exact model, llama.cpp's as limit", ours["mean_kl"],
                     peer["mean_kl"])
    verdicts.at_most(f"{model.name}: top-1 disagreement, llama.cpp's as limit", 1 - ours["top1_agreement"],
                     1 - peer["top1_agreement"])
    fast = compare_logits(model.logits_of_kvasir(model.path, "--fast"))
    print(f"figure {model.name} --fast: mean KL {fast['mean_kl']:.4g}, top-1 agreement {fast['top1_agreement']:.4g}")
    verdicts.at_most(f"{model.name} widened: mean KL", wide["mean_kl"], 1e-5)
    verdicts.at_most(f"{model.name} widened: top-1 disagreement", 1 - wide["top1_agreement"], 1e-3)


def check_perplexity(model, verdicts):
    ours = kvasir_json("eval", "ppl", model.path, "--file", model.text, "--ctx", 512, "--chunks", 100, "--threads",
                       THREADS)["ppl"]
    said = output_of(PEERS / "bin" / "llama-native" / "llama-perplexity", "-m", model.path, "-f", model.text, "-c", 512, "--chunks", 100,
                     "-t", THREADS)
    peer = float(re.search(r"Final estimate: PPL = ([0-9.]+)", said).group(1))
    verdicts.at_most(f"{model.name}: perplexity {ours:.3f}, llama.cpp {peer:.3f}, ratio", ours / peer, 1.005)


def check_speed(model, verdicts, rounds=3):
    kvasir, peer = Kvasir(int(THREADS)), LlamaCpp("llama.cpp", "llama-native", int(THREADS))
    for cell in (Cell("prompt", 512), Cell("generation", 128)):
        row = compare(Watch(kvasir, 0), kvasir, [peer], model.path, cell, rounds)
        verdicts.add(f"{model.name}: {cell}, {row['kvasir_rate']:.0f} tokens/s, llama.cpp {row['peer_rate']:.0f}, ratio",
                     f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})", "at least 1",
                     row["ratio"] >= 1)


def check_tiny_models(text, verdicts):
    last = script("compare_tiny_models.py", text, "--binary", KVASIR, may_say_no=True).splitlines()[-1]
    verdicts.add("tiny models", last, "0 above", last.startswith("0 of"))


PER_MODEL = {"tokens": check_tokens, "closeness": check_closeness, "perplexity": check_perplexity, "speed": check_speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default=str(ROOT.parent / "shared/data/wikitext-2/wiki.test.raw"))
    parser.add_argument("--only", nargs="+", choices=[*PER_MODEL, "tiny"], default=[*PER_MODEL, "tiny"])
    args = parser.parse_args()
    for needed in (args.text, PEERS / "bin" / "llama-native", KVASIR):
        if not os.path.exists(needed):
            raise SystemExit(f"{needed}: not here (see the head of this script)")
    verdicts = Verdicts()
    for name in MODELS:
        model = Model(name, args.text)
        for check in PER_MODEL:
            if check in args.only:
                PER_MODEL[check](model, verdicts)
    if "tiny" in args.only:
        check_tiny_models(args.text, verdicts)
    print(f"{verdicts.failed} claims fail")
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
