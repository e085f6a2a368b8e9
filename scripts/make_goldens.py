#!/usr/bin/env python3
"""Makes the goldens of tests/goldens: tiny models of random weights, with the logits of the reference implementation.

Each folder has the model twice, as safetensors with config.json and as GGUF by llama.cpp's converter. logits.f32 has
float32 logits of 40 positions; expected.json has the prompt, the greedy answer and, for a mixture of experts, the
experts of every layer and token. Seeds are searched until every greedy choice leads by 1e-2 of the largest logit and
every router by 1e-3, so a rounding error changes neither.

Needs torch 2.15.0, transformers 5.24.0 and numpy, and the source of llama-cpp-python 0.3.36:
  pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36
  make_goldens.py --llama-cpp llama_cpp_python-0.3.36/vendor/llama.cpp --arch llama
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers

from goldens import convert, families, reference, search

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = {"torch": "2.15.0", "transformers": "5.24.0"}
LOGIT_POSITIONS = 40


def check_versions():
    for name, module in (("torch", torch), ("transformers", transformers)):
        if module.__version__.split("+")[0] != VERSIONS[name]:
            sys.exit(f"{name} is {module.__version__}, the goldens are made with {VERSIONS[name]}")


def write_expected(folder, model, prompt, answer, watch, seed):
    tokens = torch.cat([prompt, answer])
    with watch:
        logits = reference.logits_of(model, tokens[None])[0]
        experts = watch.experts()
    positions = np.linspace(0, len(tokens) - 1, LOGIT_POSITIONS).round().astype(int).tolist()
    logits[positions].numpy().astype("<f4").tofile(folder / "logits.f32")
    expected = {"seed": seed, "prompt": prompt.tolist(), "greedy": answer.tolist(), "logit_positions": positions,
                "vocab_size": logits.shape[-1]}
    if experts:
        expected["experts"] = experts
    write_json(folder, expected)


def write_embeddings(folder, model, seed):
    """An encoder's golden: the mean of the last hidden states of prompts short and long, of length 1."""
    random, embeddings = reference.seeded(seed), []
    for tokens in (5, 70, 320):
        prompt = torch.randint(3, families.VOCAB, (tokens,), generator=random)
        vector = reference.embedding_of(model, folder, prompt[None])[0]
        embeddings.append({"pooling": "mean", "prompt": prompt.tolist(), "vector": vector.tolist()})
    write_json(folder, {"seed": seed, "embeddings": embeddings})


def write_label_logits(family, folder, model, seed):
    """A cross-encoder's golden: the logits of pairs short and long; the second text is of type 1, where there are two."""
    random, scores = reference.seeded(seed), []
    for tokens in (5, 70, 320):
        prompt = torch.randint(3, families.VOCAB, (tokens,), generator=random)
        types = torch.zeros_like(prompt)
        if family.config.get("type_vocab_size", 2) > 1:
            types[tokens // 3:] = 1
        vector = reference.label_logits_of(model, prompt[None], types[None])[0]
        scores.append({"pooling": "rank", "prompt": prompt.tolist(), "token_types": types.tolist(),
                       "vector": vector.tolist()})
    write_json(folder, {"seed": seed, "embeddings": scores})


def write_json(folder, expected):
    lines = [f'"{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in expected.items()]
    (folder / "expected.json").write_text("{" + ",\n".join(lines) + "}\n")


def write_model(family, seed, folder):
    """The model's folder and what the reference says of it; False when the seed does not give the margins."""
    with tempfile.TemporaryDirectory() as work:
        reference.save(reference.make_model(family, seed), work)
        model = reference.load(family, work)
        found = None if family.encoder else search.find(model, seed)
        if not found and not family.encoder:
            return False
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(work, folder, copy_function=shutil.copyfile)
    if family.labels:
        write_label_logits(family, folder, model, seed)
    elif family.encoder:
        reference.save_pooling(family, folder, seed)
        write_embeddings(folder, model, seed)
    else:
        write_expected(folder, model, *found, seed)
    return True


def make(name, args):
    family = families.FAMILIES[name]
    folder = pathlib.Path(args.out) / name
    for seed in range(args.seed, args.seed + args.seeds):
        if not write_model(family, seed, folder):
            continue
        if args.llama_cpp:
            convert.to_gguf(name, args.llama_cpp, folder, folder / "model.gguf", families.VOCAB, family.gguf)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{name}: seed {seed}, {size / 1e3:.0f} KB", flush=True)
        return True
    print(f"{name}: no seed from {args.seed} to {args.seed + args.seeds - 1} gives the margins", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=list(families.FAMILIES), help="default: all")
    parser.add_argument("--llama-cpp", help="the folder with llama.cpp's conversion/ and gguf-py/")
    parser.add_argument("--out", default=str(ROOT / "tests/goldens"))
    parser.add_argument("--seed", type=int, default=1, help="the first seed to try")
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds to try")
    args = parser.parse_args()
    check_versions()
    torch.set_num_threads(1)
    return 0 if all([make(name, args) for name in args.arch or families.FAMILIES]) else 1


if __name__ == "__main__":
    sys.exit(main())
