#!/usr/bin/env python3
"""Writes the tokenizer of a GGUF file as a folder that transformers' AutoTokenizer loads.

For tools that want such a folder beside a server's URL. Byte-level BPE only (tokenizer.ggml.model "gpt2"), of the
pre-tokenizers below; needs no package but, for --check, transformers.

    scripts/make_tokenizer_folder.py model.gguf build/clients/tokenizer
    scripts/make_tokenizer_folder.py model.gguf FOLDER --check tests/cases/tokenizer/stress.txt --kvasir BINARY

Exit codes: 0 written (and every id equal); 1 an id differs from `kvasir tokenize --special`; 2 a file that is no such
GGUF; 77 --check without transformers.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRING, ARRAY = 8, 9
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
CONTROL, USER_DEFINED = 3, 4

LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_WORDS = LLAMA3_WORDS.replace("{1,3}", "")


class Unsupported(Exception):
    pass


def byte_level(words):
    """Splits by a pattern of its own (none: by GPT-2's) before bytes become characters."""
    own = [{"type": "Split", "pattern": {"Regex": words}, "behavior": "Isolated", "invert": False}] if words else []
    return own + [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": not words}]


PRETOKENIZERS = {  # tokenizer.ggml.pre -> steps, and whether a word of the vocabulary is taken whole
    "gpt-2": (byte_level(None), False),
    "smollm": ([{"type": "Digits", "individual_digits": True}] + byte_level(None), False),
    "llama-bpe": (byte_level(LLAMA3_WORDS), True),
    "qwen2": (byte_level(QWEN2_WORDS), False),
}


class Metadata:
    """The keys and values at the beginning of a GGUF file."""

    def __init__(self, path):
        with open(path, "rb") as self.file:
            magic, version, _, count = struct.unpack("<4sIQQ", self.file.read(24))
            if magic != b"GGUF" or version not in (2, 3):
                raise Unsupported(f"{path} is no GGUF file of version 2 or 3")
            self.values = {self.text(): self.value(self.number("<I")) for _ in range(count)}

    def number(self, form):
        return struct.unpack(form, self.file.read(struct.calcsize(form)))[0]

    def text(self):
        return self.file.read(self.number("<Q")).decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            kind, count = self.number("<I"), self.number("<Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(FORMATS[kind])

    def get(self, key, otherwise=None):
        return self.values.get("tokenizer." + key, otherwise)


def tokenizer_json(metadata):
    if metadata.get("ggml.model") != "gpt2":
        raise Unsupported(f"tokenizer.ggml.model is {metadata.get('ggml.model')!r}, only 'gpt2' is known here")
    pre = metadata.get("ggml.pre", "gpt-2")
    if pre not in PRETOKENIZERS:
        raise Unsupported(f"tokenizer.ggml.pre is {pre!r}, known here: {', '.join(PRETOKENIZERS)}")
    steps, keeps_known_words = PRETOKENIZERS[pre]
    tokens, types = metadata.get("ggml.tokens"), metadata.get("ggml.token_type")
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind == CONTROL}
             for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (CONTROL, USER_DEFINED)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}, "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": keeps_known_words, "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in metadata.get("ggml.merges")]}}


def tokenizer_config(metadata):
    architecture = metadata.values["general.architecture"]
    tokens = metadata.get("ggml.tokens")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
              "model_max_length": metadata.values.get(f"{architecture}.context_length", 2048)}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token = metadata.get(f"ggml.{key}_token_id")
        if token is not None:
            config[f"{name}_token"] = tokens[token]
    if metadata.get("chat_template"):
        config["chat_template"] = metadata.get("chat_template")
    return config


def first_difference(folder, model, binary, file):
    """The first difference between the folder's ids of a file and kvasir's, or None."""
    from transformers import AutoTokenizer
    theirs = AutoTokenizer.from_pretrained(folder).encode(file.read_bytes().decode(), add_special_tokens=False)
    command = [binary, "tokenize", model, "--file", str(file), "--special", "--no-bos", "--json"]
    ours = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["ids"]
    for place, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            return f"token {place} is {b}, kvasir says {a}"
    return None if len(ours) == len(theirs) else f"{len(theirs)} tokens, kvasir says {len(ours)}"


def check(folder, model, binary, files):
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: the package transformers is not installed")
        return 77
    differences = {file: first_difference(folder, model, binary, file) for file in files}
    for file, difference in differences.items():
        print(f"{file}: {difference or 'equal'}")
    return 1 if any(differences.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", nargs="+", type=pathlib.Path, default=[], help="texts whose ids must be kvasir's")
    parser.add_argument("--kvasir", default=str(ROOT / "build/release/bin/kvasir"), help="the binary, for --check")
    arguments = parser.parse_args()
    try:
        metadata = Metadata(arguments.model)
        files = {"tokenizer.json": tokenizer_json(metadata), "tokenizer_config.json": tokenizer_config(metadata)}
    except (OSError, Unsupported, struct.error) as error:
        print(f"make_tokenizer_folder.py: {error}", file=sys.stderr)
        return 2
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (arguments.folder / name).write_text(json.dumps(content, ensure_ascii=False))
    return check(arguments.folder, arguments.model, arguments.kvasir, arguments.check) if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
