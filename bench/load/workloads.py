"""The requests of clients: lists of {"at_ms", "prompt", "max_tokens"} for kvasir_load.

Prompts are pieces of a text in an order that `seed` draws, so that no run finds another's prompts in a cache.
"""
import csv
import datetime
import gzip
import json
import random


class Text:
    """Token ids of a long text, in pieces of 16 drawn at random: as unlike each other as its sentences are."""

    PIECE = 16

    def __init__(self, ids):
        self.pieces = [ids[i:i + self.PIECE] for i in range(0, len(ids) - self.PIECE, self.PIECE)]

    def prompt(self, tokens, *seed):
        """The same `seed`, the same tokens."""
        draw = random.Random(repr(seed))
        ids = []
        while len(ids) < tokens:
            ids += draw.choice(self.pieces)
        return ids[:tokens]


def users(text, seed, requests=48, prompt_tokens=300, answer_tokens=100, shared_tokens=0):
    """Requests for users who each send when their last answer has ended; all begin with the same `shared_tokens`."""
    shared = text.prompt(shared_tokens, seed, "shared")
    return [{"prompt": shared + text.prompt(prompt_tokens, seed, i), "max_tokens": answer_tokens}
            for i in range(requests)]


def at_rate(requests, per_second, seconds):
    """So many of the first requests, their times stretched, that `per_second` come for `seconds`."""
    taken = requests[:max(2, round(per_second * seconds))]
    first, last = taken[0]["at_ms"], taken[-1]["at_ms"]
    stretch = 1000 * seconds / (last - first)
    return [{**request, "at_ms": (request["at_ms"] - first) * stretch} for request in taken]


def azure(path, text, seed, context):
    """Rows of Azure's public trace of 2023 that fit into `context` tokens."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    requests = []
    for i, row in enumerate(rows):
        prompt, answer = int(row["ContextTokens"]), int(row["GeneratedTokens"])
        if prompt > 0 and answer > 0 and prompt + answer <= context:
            at = datetime.datetime.fromisoformat(row["TIMESTAMP"][:26])
            requests.append({"at_ms": at.timestamp() * 1000, "prompt_of": (prompt, seed, i), "max_tokens": answer})
    return requests


def mooncake(path, seed, context):
    """Rows of Mooncake's conversation trace that fit; blocks of 512 tokens with the same hash are the same tokens."""
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    return [{"at_ms": row["timestamp"], "blocks_of": (row["input_length"], seed, row["hash_ids"]),
             "max_tokens": row["output_length"]}
            for row in rows if row["output_length"] > 0 and row["input_length"] + row["output_length"] <= context]


def written_out(requests, text):
    """Rows of a trace with their prompts."""
    for request in requests:
        request = dict(request)
        if "prompt_of" in request:
            request["prompt"] = text.prompt(*request.pop("prompt_of"))
        elif "blocks_of" in request:
            tokens, seed, hashes = request.pop("blocks_of")
            request["prompt"] = sum((text.prompt(512, seed, hash_id) for hash_id in hashes), [])[:tokens]
        yield request
