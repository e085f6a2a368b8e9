#!/usr/bin/env python3
"""Runs MaskBench's schemas through llguidance and xgrammar, as `kvasir schema test` runs them through Kvasir.

    python3 bench/guided/peers.py MODEL.gguf CASES.jsonl[.gz] [--peers llguidance,xgrammar] [--every N] [--repeat N]

MODEL gives the vocabulary. CASES has lines {"name", "schema", "tests": [{"valid", "data"}]}; an instance is the bytes of
`data` as they stand in the line. Its tokens are the longest at each place, which is nearly what a tokenizer makes.

An instance passes when every token is in its mask and the end is allowed behind the last. Times are processor time of
the thread; of each position the least of --repeat fresh grammars counts. `call_us` is what a call from Python costs that
does next to nothing; it is in every time of a mask and of an accept. Packages: gguf, llguidance, numpy, xgrammar (with torch).
"""
import argparse
import gzip
import json
import multiprocessing
import pathlib
import sys
import time

import gguf
import numpy as np


def thread_us():
    return time.thread_time_ns() / 1000


def byte_of_letter():
    """The bytes behind the letters of byte-level BPE vocabularies."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(256) if byte not in plain]
    letters.update({chr(256 + place): byte for place, byte in enumerate(others)})
    return letters


class Vocabulary:
    """Tokens as bytes; control tokens have none."""

    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def value(name):
            return fields[name].contents() if name in fields else None

        pieces = value("tokenizer.ggml.tokens")
        kinds = value("tokenizer.ggml.token_type")
        is_byte_level = value("tokenizer.ggml.model") == "gpt2"
        letters = byte_of_letter()
        self.tokens = []
        for piece, kind in zip(pieces, kinds):
            if kind in (2, 3):  # unknown, control
                self.tokens.append(b"")
            elif is_byte_level and kind == 1:
                self.tokens.append(bytes(letters[letter] for letter in piece))
            elif kind == 6:  # a byte: <0x0A>
                self.tokens.append(bytes([int(piece[3:-1], 16)]))
            else:
                self.tokens.append(piece.replace("\u2581", " ").encode())
        self.end = value("tokenizer.ggml.eos_token_id")
        self.ids = {}
        for token, text in enumerate(self.tokens):
            if text:
                self.ids.setdefault(text, token)
        self.longest = max(map(len, self.ids))

    def encode(self, text):
        ids = []
        at = 0
        while at < len(text):
            size = next(n for n in range(min(self.longest, len(text) - at), 0, -1) if text[at:at + n] in self.ids)
            ids.append(self.ids[text[at:at + size]])
            at += size
        return ids


class Llguidance:
    def __init__(self, vocabulary):
        import llguidance
        import llguidance.numpy

        class Tokens:
            eos_token_id = vocabulary.end
            bos_token_id = None
            # A control token is FF and its text, which no text has.
            tokens = [text or b"\xff<|%d|>" % token for token, text in enumerate(vocabulary.tokens)]
            special_token_ids = [token for token, text in enumerate(vocabulary.tokens) if not text]

            def __call__(self, text):
                return vocabulary.encode(text if isinstance(text, bytes) else text.encode())

        self.package = llguidance
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)
        self.fill_mask = llguidance.numpy.fill_next_token_bitmask

    def compile(self, schema):
        grammar = self.package.LLMatcher.grammar_from_json_schema(schema)
        self.first = self.package.LLMatcher(self.tokenizer, grammar)
        if self.first.is_error():
            raise ValueError(self.first.get_error())

    def begin(self):
        self.matcher = self.first.deep_copy()

    def fill(self):
        self.fill_mask(self.matcher, self.mask, 0)

    def allows(self, token):
        return bool(self.mask[0, token // 32] >> (token % 32) & 1)

    def accept(self, token):
        return self.matcher.consume_token(token)

    def may_end(self):
        return self.matcher.is_accepting()

    def idle_call(self):
        return self.matcher.is_error()


class Xgrammar:
    def __init__(self, vocabulary):
        import xgrammar

        self.package = xgrammar
        tokens = [text or b"<|%d|>" % token for token, text in enumerate(vocabulary.tokens)]
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens),
                                      stop_token_ids=[vocabulary.end])
        self.end = vocabulary.end
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, len(tokens))
        self.words = self.mask.numpy()[0]

    def compile(self, schema):
        self.grammar = self.compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)

    def begin(self):
        self.matcher = self.package.GrammarMatcher(self.grammar)

    def fill(self):
        self.matcher.fill_next_token_bitmask(self.mask)

    def allows(self, token):
        return bool(self.words[token // 32] >> (token % 32) & 1)

    def accept(self, token):
        return self.matcher.accept_token(token)

    def may_end(self):
        self.fill()
        return self.allows(self.end)

    def idle_call(self):
        return self.matcher.is_terminated()


PEERS = {"llguidance": Llguidance, "xgrammar": Xgrammar}


DECODER = json.JSONDecoder()


def behind_blanks(text, at, blanks=" \t\r\n"):
    while text[at] in blanks:
        at += 1
    return at


def members(text, at):
    """(key, place of its value, place behind that) of the object at this place."""
    at = behind_blanks(text, at) + 1
    while text[at := behind_blanks(text, at, " \t\r\n,")] != "}":
        key, at = DECODER.raw_decode(text, at)
        begin = behind_blanks(text, at, " \t\r\n:")
        at = DECODER.raw_decode(text, begin)[1]
        yield key, begin, at


def elements(text, at):
    """The place of each element of the array at this place."""
    at = behind_blanks(text, at) + 1
    while text[at := behind_blanks(text, at, " \t\r\n,")] != "]":
        yield at
        at = DECODER.raw_decode(text, at)[1]


def read_case(text):
    parts = {key: (begin, end) for key, begin, end in members(text, 0)}
    name = json.loads(text[slice(*parts["name"])])
    tests = []
    for at in elements(text, parts["tests"][0]):
        test = {key: text[begin:end] for key, begin, end in members(text, at)}
        tests.append((test["valid"] == "true", test["data"].encode()))
    return name, text[slice(*parts["schema"])], tests


def read_cases(path, every):
    """(name, schema, [(is_valid, bytes)]) of the first of so many lines each."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for number, line in enumerate(file):
            if number % every == 0:
                yield read_case(line)


def judge(peer, ids, times):
    """Whether the instance passes; adds (mask, accept) of each position."""
    peer.begin()
    for token in ids:
        begin = thread_us()
        peer.fill()
        filled = thread_us()
        is_allowed = peer.allows(token)
        before = thread_us()
        is_accepted = is_allowed and peer.accept(token)
        times.append((filled - begin, thread_us() - before))
        if not is_accepted:
            return False
    return peer.may_end()


def run_case(peer, vocabulary, case, repeat):
    name, schema, tests = case
    least, compile_ms, verdicts = None, float("inf"), []
    for _ in range(repeat):
        begin = thread_us()
        try:
            peer.compile(schema)
        except Exception as error:  # each package has its own
            return {"name": name, "refused": str(error).splitlines()[0][:200]}
        compile_ms = min(compile_ms, (thread_us() - begin) / 1000)
        times = []
        verdicts = [judge(peer, vocabulary.encode(text), times) for _, text in tests]
        least = times if least is None else [(min(a, c), min(b, d)) for (a, b), (c, d) in zip(least, times)]
    wrong = [is_valid for (is_valid, _), passed in zip(tests, verdicts) if passed != is_valid]
    return {"name": name, "compile_ms": compile_ms, "times": least, "wrong_accepts": wrong.count(False),
            "wrong_refusals": wrong.count(True)}


def call_cost(peer):
    peer.compile('{"type":"null"}')
    peer.begin()
    costs = []
    for _ in range(2000):
        begin = thread_us()
        peer.idle_call()
        costs.append(thread_us() - begin)
    return float(np.median(costs))


def work(name, vocabulary, inbox, outbox, repeat):
    peer = PEERS[name](vocabulary)
    outbox.put({"call_us": call_cost(peer)})
    while (case := inbox.get()) is not None:
        outbox.put(run_case(peer, vocabulary, case, repeat))


class Worker:
    """A process of its own, begun anew when a schema crashes it or takes too long."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.start()

    def start(self):
        name, vocabulary, repeat, self.timeout_s = self.arguments
        self.inbox, self.outbox = multiprocessing.Queue(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=work, args=(name, vocabulary, self.inbox, self.outbox, repeat), daemon=True)
        self.process.start()
        self.call_us = self.outbox.get(timeout=600)["call_us"]

    def run(self, case):
        self.inbox.put(case)
        end = time.monotonic() + self.timeout_s
        while time.monotonic() < end and self.process.is_alive():
            try:
                return self.outbox.get(timeout=0.2)
            except Exception:
                continue
        kind = "timed_out" if self.process.is_alive() else "crashed"
        self.process.kill()
        self.start()
        return {"name": case[0], kind: True}

    def stop(self):
        self.inbox.put(None)
        self.process.join(10)


def spread(values):
    if not len(values):
        return {}
    return {"p50": float(np.percentile(values, 50)), "p99": float(np.percentile(values, 99)), "max": float(np.max(values))}


def summary(name, results, call_us):
    done = [result for result in results if "times" in result]
    masks = [mask for result in done for mask, _ in result["times"] or []]
    accepts = [accept for result in done for _, accept in result["times"] or []]
    return {"peer": name, "schemas": len(results),
            "passed": sum(not result["wrong_accepts"] and not result["wrong_refusals"] for result in done),
            "refused": sum("refused" in result for result in results),
            "wrong_accepts": sum(result["wrong_accepts"] for result in done),
            "wrong_refusals": sum(result["wrong_refusals"] for result in done),
            "crashed": sum("crashed" in result for result in results),
            "timed_out": sum("timed_out" in result for result in results),
            "masks": len(masks), "mask_us": spread(masks), "accept_us": spread(accepts),
            "compile_ms": spread([result["compile_ms"] for result in done]), "call_us": call_us}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--peers", default="llguidance,xgrammar")
    parser.add_argument("--every", type=int, default=1, help="the first of so many lines")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout-s", type=float, default=60, help="of one schema, all repeats together")
    options = parser.parse_args()
    vocabulary = Vocabulary(options.model)
    cases = list(read_cases(options.cases, options.every))
    for name in options.peers.split(","):
        worker = Worker(name, vocabulary, options.repeat, options.timeout_s)
        results = []
        for case in cases:
            results.append(worker.run(case))
            print(f"\r{name}: {len(results)} of {len(cases)}", end="", file=sys.stderr)
        print(file=sys.stderr)
        worker.stop()
        print(json.dumps(summary(name, results, worker.call_us)), flush=True)


if __name__ == "__main__":
    main()
