#!/usr/bin/env python3
"""How fast a server answers with adapters, over how fast it answers without: one stream, and as many as there are adapters.

The adapters have drawn numbers and change every matrix of the layers; answers are greedy and as long as they may be. Both
kinds are played in turn by one server. Rates count from the first token to the last.

Usage: lora_speed.py MODEL --hidden N --queries N --keys N --wide N --layers N [--rank N] [--adapters N] [--rounds N]
         [--tokens N] [--out FILE]
  The sizes are of the model: hidden, all queries' and keys' rows, the feed-forward layer's.
"""
import argparse
import array
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))


def write_adapter(folder, arguments, seed):
    """A PEFT folder of drawn numbers."""
    hidden, queries, keys, wide = arguments.hidden, arguments.queries, arguments.keys, arguments.wide
    shapes = {"self_attn.q_proj": (hidden, queries), "self_attn.k_proj": (hidden, keys), "self_attn.v_proj": (hidden, keys),
              "self_attn.o_proj": (queries, hidden), "mlp.gate_proj": (hidden, wide), "mlp.up_proj": (hidden, wide),
              "mlp.down_proj": (wide, hidden)}
    draw = random.Random(seed)
    pool = array.array("f", (draw.gauss(0, 0.01) for _ in range(1 << 16)))
    header, data = {}, bytearray()
    for layer in range(arguments.layers):
        for module, (inputs, outputs) in shapes.items():
            for half, (rows, columns) in (("A", (arguments.rank, inputs)), ("B", (outputs, arguments.rank))):
                begin, count = len(data), rows * columns
                while count > 0:
                    first = draw.randrange(len(pool))
                    piece = pool[first:first + count]
                    data += piece.tobytes()
                    count -= len(piece)
                header[f"base_model.model.model.layers.{layer}.{module}.lora_{half}.weight"] = {
                    "dtype": "F32", "shape": [rows, columns], "data_offsets": [begin, len(data)]}
    folder.mkdir()
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": arguments.rank, "lora_alpha": 16}))


def answer(port, model, salt, tokens):
    """Seconds from the first token to the last, and tokens a second."""
    body = {"model": model, "prompt": f"Story {salt}: once upon a time there", "max_tokens": tokens, "ignore_eos": True,
            "temperature": 0, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    times = [time.monotonic() for line in connection.getresponse() if line.startswith(b"data: {")]
    connection.close()
    return times[-1] - times[0]


def rate(port, models, salt, tokens):
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(models)) as pool:
        seconds = list(pool.map(lambda job: answer(port, job[1], f"{salt}.{job[0]}", tokens), enumerate(models)))
    return (tokens - 1) / seconds[0] if len(models) == 1 else len(models) * tokens / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    for name in ("hidden", "queries", "keys", "wide", "layers"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--adapters", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for i in range(arguments.adapters):
            write_adapter(pathlib.Path(folder, f"a{i}"), arguments, i)
            words += ["--lora", f"a{i}={folder}/a{i}"]
        server = subprocess.Popen([KVASIR, "serve", arguments.model, "--port", "0", "--speculate", "off", "--max-num-seqs",
                                   str(arguments.adapters), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            port = next(int(found[1]) for line in server.stdout if (found := re.search(rb"http://[^ :]+:(\d+)", line)))
            adapters = [f"a{i}" for i in range(arguments.adapters)]
            rows = []
            for turn in range(arguments.rounds):
                for streams in (1, arguments.adapters):
                    kinds = {"base": [""] * streams, "adapters": adapters[:streams]}
                    order = list(kinds) if turn % 2 == 0 else list(kinds)[::-1]
                    rates = {kind: rate(port, kinds[kind], f"{turn}.{kind}", arguments.tokens) for kind in order}
                    rows.append({"streams": streams, "turn": turn, **rates, "ratio": rates["adapters"] / rates["base"]})
                    print({key: round(value, 3) for key, value in rows[-1].items()}, flush=True)
        finally:
            server.terminate()
            server.wait()
    median = {streams: round(statistics.median(row["ratio"] for row in rows if row["streams"] == streams), 3)
              for streams in (1, arguments.adapters)}
    print(json.dumps({"median": median}))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": arguments.model, "rank": arguments.rank, "median": median,
                                                           "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
