#!/usr/bin/env python3
"""Compares `kvasir tokenize` with llama.cpp, or with a tokenizer.json, over whole text files.

With llama.cpp every file is tokenised with special parsing off and on. With --tokenizer-json every line is too, and the
decoded texts are compared. Needs the package llama-cpp-python or tokenizers.
Exit code 0: no difference; 1: some; 2: the comparison could not run.

    scripts/compare_tokenizer.py model.gguf wiki.test.raw tests/cases/tokenizer/stress.txt
    scripts/compare_tokenizer.py model.gguf --tokenizer-json tokenizer.json tests/cases/tokenizer/stress.txt
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 2000  # of a file, one by one; each is a process


def kvasir_json(binary, model, flags, text):
    command = [str(binary), "tokenize", str(model), "--json", "--file", "/dev/stdin", *flags]
    done = subprocess.run(command, input=text, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}: {done.stderr.decode().strip()}")
    return json.loads(done.stdout)


def kvasir_ids(binary, model, text, special, bos):
    flags = ([] if special else ["--no-special"]) + ([] if bos else ["--no-bos"])
    return kvasir_json(binary, model, flags, text)["ids"]


def first_difference(a, b):
    for index, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return index
    return None if len(a) == len(b) else min(len(a), len(b))


class Verdicts:
    def __init__(self):
        self.num_equal = self.num_different = 0

    def add(self, what, ours, theirs, show):
        index = first_difference(ours, theirs)
        self.num_equal += index is None
        if index is None:
            return
        self.num_different += 1
        print(f"{what}: DIFFERENT from {index}\n  kvasir {show(ours, index)}\n  theirs {show(theirs, index)}")


def around(values, index):
    return repr(values[max(0, index - 2):index + 5])


def compare_with_llama(arguments, verdicts):
    from llama_cpp import Llama
    llama = Llama(arguments.model, vocab_only=True, verbose=False)

    def show(ids, index):
        return [(i, llama.detokenize([i], special=True).decode("utf-8", "replace")) for i in ids[max(0, index - 2):index + 4]]
    for text_file in arguments.texts:
        text = pathlib.Path(text_file).read_bytes()
        for special in (False, True):
            theirs = llama.tokenize(text, add_bos=arguments.bos, special=special)
            ours = kvasir_ids(arguments.kvasir, arguments.model, text, special, arguments.bos)
            verdicts.add(f"{text_file}, special parsing {'on' if special else 'off'}", ours, theirs, show)


def compare_with_library(arguments, verdicts):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer_json))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def show(ids, index):
        return [tokenizer.id_to_token(i) for i in ids[max(0, index - 2):index + 5]]
    for text_file in arguments.texts:
        whole = pathlib.Path(text_file).read_bytes().decode()
        lines = whole.split("\n")[:MAX_LINES]
        for number, text in enumerate([whole, *lines]):
            what = f"{text_file}, line {number}" if number else text_file
            theirs = tokenizer.encode(text, add_special_tokens=arguments.bos).ids
            ours = kvasir_ids(arguments.kvasir, arguments.model, text.encode(), True, arguments.bos)
            verdicts.add(f"{what}, ids", ours, theirs, show)
            decoded = kvasir_json(arguments.kvasir, arguments.model, ["--decode"], " ".join(map(str, theirs)).encode())
            verdicts.add(f"{what}, decoded", decoded["text"], tokenizer.decode(theirs), around)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a GGUF file or a folder")
    parser.add_argument("texts", nargs="+", help="text files")
    parser.add_argument("--tokenizer-json", type=pathlib.Path, help="of the same model, instead of llama.cpp")
    parser.add_argument("--kvasir", default=str(ROOT / "build" / "release" / "bin" / "kvasir"), help="the binary")
    parser.add_argument("--bos", action="store_true", help="let both add BOS where the model wants it")
    arguments = parser.parse_args()
    verdicts = Verdicts()
    try:
        (compare_with_library if arguments.tokenizer_json else compare_with_llama)(arguments, verdicts)
    except ImportError as missing:
        print(f"{missing.name} is not installed", file=sys.stderr)
        return 2
    print(f"{verdicts.num_equal} comparisons equal, {verdicts.num_different} different")
    return 1 if verdicts.num_different else 0


if __name__ == "__main__":
    sys.exit(main())
