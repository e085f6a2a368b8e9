#!/usr/bin/env python3
"""Many adapters at once, here and in llama.cpp: both servers play the same mix in turn, with the same GGUF adapters.

The adapters have drawn numbers and change every matrix of the layers; answers are greedy and as long as they may be. A rate is
of all generated tokens over the time from the first request to the last token.

Usage: beside_llama.py MODEL.gguf [--rank N] [--adapters N] [--rounds N] [--tokens N] [--out FILE]
Needs numpy, gguf and build/peers (bench/peers/install.sh).
"""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import gguf
import numpy as np

import lora_speed

LLAMA = lora_speed.ROOT / "build/peers/bin/llama-native/llama-server"
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def write_adapter(path, reader, rank, seed):
    draw = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 2.0 * rank)
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        if parts[0] == "blk" and parts[2] in MATRICES and parts[3] == "weight":
            inputs, outputs = map(int, tensor.shape)
            writer.add_tensor(tensor.name + ".lora_a", draw.normal(0, 0.01, (rank, inputs)).astype(np.float16))
            writer.add_tensor(tensor.name + ".lora_b", draw.normal(0, 0.01, (outputs, rank)).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Kvasir:
    def __init__(self, model, paths):
        words = [word for i, path in enumerate(paths) for word in ("--lora", f"a{i}={path}")]
        self.process = subprocess.Popen([lora_speed.KVASIR, "serve", model, "--port", "0", "--speculate", "off", "--max-num-seqs", str(2 * len(paths)),
                                         *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.port = next(int(found[1]) for line in self.process.stdout if (found := re.search(rb"http://[^ :]+:(\d+)", line)))

    def body(self, adapter, num_adapters):
        return {} if adapter is None else {"model": f"a{adapter}"}


class Llama:
    def __init__(self, model, paths):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([LLAMA, "-m", model, "--port", str(self.port), "-np", str(len(paths)), "-c", str(512 * len(paths)), "-t", "2",
                                         "--lora", ",".join(map(str, paths)), "--lora-init-without-apply"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5)
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        raise SystemExit("llama-server did not start")

    def body(self, adapter, num_adapters):
        return {"lora": [{"id": i, "scale": 1.0 if i == adapter else 0.0} for i in range(num_adapters)]}


def answer(server, adapter, num_adapters, salt, tokens):
    body = {"prompt": f"Story {salt}: once upon a time there", "max_tokens": tokens, "ignore_eos": True, "temperature": 0,
            **server.body(adapter, num_adapters)}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=1200)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = json.loads(connection.getresponse().read())
    connection.close()
    return response["usage"]["completion_tokens"]


def rate(server, adapters, num_adapters, salt, tokens):
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(adapters)) as pool:
        counts = list(pool.map(lambda job: answer(server, job[1], num_adapters, f"{salt}.{job[0]}", tokens), enumerate(adapters)))
    return sum(counts) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--adapters", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"a{i}.gguf") for i in range(arguments.adapters)]
        reader = gguf.GGUFReader(arguments.model)
        for seed, path in enumerate(paths):
            write_adapter(path, reader, arguments.rank, seed)
        servers = {}
        try:
            servers = {"kvasir": Kvasir(arguments.model, paths)}
            servers["llama.cpp"] = Llama(arguments.model, paths)
            mixes = {"no adapter, 1 stream": [None], "1 adapter, 1 stream": [0], "no adapter": [None] * arguments.adapters,
                     "each its own": list(range(arguments.adapters))}
            for turn in range(arguments.rounds):
                for mix, adapters in mixes.items():
                    names = list(servers) if turn % 2 == 0 else list(servers)[::-1]
                    rates = {name: rate(servers[name], adapters, arguments.adapters, f"{turn}", arguments.tokens) for name in names}
                    rows.append({"mix": mix, "turn": turn, **rates, "ratio": rates["kvasir"] / rates["llama.cpp"]})
                    print({key: round(value, 2) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True)
        finally:
            for server in servers.values():
                server.process.terminate()
                server.process.wait()
    median = {mix: round(statistics.median(row["ratio"] for row in rows if row["mix"] == mix), 2) for mix in mixes}
    print(json.dumps({"median_ratio": median}))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": pathlib.Path(arguments.model).name, "rank": arguments.rank,
                                                           "adapters": arguments.adapters, "median_ratio": median, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
