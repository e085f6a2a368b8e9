#!/usr/bin/env python3
"""Compares the token ids of `kvasir tokenize` with llama.cpp's over whole text files.

Every file is tokenised with special parsing off and on. Needs the package llama-cpp-python.
Exit code 0: no differing id; 1: some; 2: the comparison could not run.

    scripts/compare_tokenizer.py model.gguf wiki.test.raw tests/cases/tokenizer/stress.txt
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def kvasir_ids(binary, model, text_file, special, bos):
    command = [binary, "tokenize", model, "--file", text_file, "--json"]
    command += ["--special"] if special else []
    command += [] if bos else ["--no-bos"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["ids"]


def first_difference(a, b):
    for index, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return index
    return None if len(a) == len(b) else min(len(a), len(b))


def describe(llama, ids, index):
    return [(i, llama.detokenize([i], special=True).decode("utf-8", "replace")) for i in ids[max(0, index - 2):index + 4]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("texts", nargs="+", help="text files")
    parser.add_argument("--kvasir", default=str(ROOT / "build" / "release" / "bin" / "kvasir"), help="the binary")
    parser.add_argument("--bos", action="store_true", help="let both add BOS where the model wants it")
    arguments = parser.parse_args()
    try:
        from llama_cpp import Llama
    except ImportError:
        print("llama-cpp-python is not installed", file=sys.stderr)
        return 2

    llama = Llama(arguments.model, vocab_only=True, verbose=False)
    num_different = 0
    for text_file in arguments.texts:
        text = pathlib.Path(text_file).read_bytes()
        for special in (False, True):
            theirs = llama.tokenize(text, add_bos=arguments.bos, special=special)
            ours = kvasir_ids(arguments.kvasir, arguments.model, text_file, special, arguments.bos)
            index = first_difference(ours, theirs)
            verdict = "equal" if index is None else f"DIFFERENT from token {index}"
            print(f"{text_file}, special parsing {'on' if special else 'off'}: {len(ours)} tokens, {verdict}")
            if index is not None:
                num_different += 1
                print(f"  kvasir    {describe(llama, ours, index)}\n  llama.cpp {describe(llama, theirs, index)}")
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
