#!/usr/bin/env python3
"""Compares logits on tiny random models with llama.cpp's: every architecture, every weight type.

Each model is made, widened to F32 and run by both with an F32 cache; the widened file must agree to 1e-3 of the
largest logit. The file as it is is reported beside it: there the activations are rounded too.
Needs llama-cpp-python, gguf and numpy. Exit code 1 when a widened model disagrees.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parent
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
LIMIT = 1e-3
CTX, WINDOWS = 64, 4


def script(name, *args):
    done = subprocess.run([sys.executable, SCRIPTS / name, *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def kvasir_logits(binary, model, text, out):
    subprocess.run([binary, "eval", "logits", model, "--file", text, "--ctx", str(CTX), "--tokens",
                    str(CTX * WINDOWS), "--kv-type", "f32", "--out", out, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="a text of at least a few kilobytes")
    parser.add_argument("--binary", default=str(SCRIPTS.parent / "build/release/bin/kvasir"))
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.txt"
        text.write_bytes(pathlib.Path(args.text).read_bytes()[:6000])
        own, wide, peer, ours = (pathlib.Path(folder) / name for name in ("own.gguf", "wide.gguf", "p.npy", "k.npy"))
        for architecture in ARCHITECTURES:
            for weight_type in TYPES:
                script("make_tiny_model.py", "--arch", architecture, "--type", weight_type, "--seed", 3, own)
                script("widen_gguf.py", own, wide)
                script("peer_logits.py", wide, "--file", text, "--out", peer, "--ctx", CTX, "--windows", WINDOWS,
                       "--kv-f32")
                kvasir_logits(args.binary, wide, text, ours)
                exact = json.loads(script("compare_logits.py", peer, ours))["max_abs_over_max"]
                kvasir_logits(args.binary, own, text, ours)
                rounded = json.loads(script("compare_logits.py", peer, ours))["mean_kl"]
                failures += exact > LIMIT
                print(f"{architecture:7} {weight_type:5} widened: max |a-b| / max |b| {exact:.1e}   as it is: "
                      f"KL {rounded:.1e}", flush=True)
    print(f"{failures} of {len(ARCHITECTURES) * len(TYPES)} above {LIMIT}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
