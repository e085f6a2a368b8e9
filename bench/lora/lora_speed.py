#!/usr/bin/env python3
"""How fast a server answers with adapters, over how fast it answers without: one stream, and as many as there are adapters.

The adapters have drawn numbers and change every matrix of the layers; answers are greedy and as long as they may be. Both
kinds are played in turn by one server. Rates count from the first token to the last.

Usage: lora_speed.py MODEL --hidden N --queries N --keys N --wide N --layers N [--rank N] [--adapters N] [--type f16|int8]
         [--rounds N] [--tokens N] [--out FILE]
  The sizes are as scripts/make_lora_adapter.py has them.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

from make_lora_adapter import SIZES, write_adapter  # noqa: E402

KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))


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
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--adapters", type=int, default=16)
    parser.add_argument("--type", choices=["f16", "int8"], default="f16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for i in range(arguments.adapters):
            write_adapter(pathlib.Path(folder, f"a{i}"), vars(arguments), arguments.rank, i)
            words += ["--lora", f"a{i}={folder}/a{i}"]
        server = subprocess.Popen([KVASIR, "serve", arguments.model, "--port", "0", "--speculate", "off", "--lora-type", arguments.type, "--max-num-seqs",
                                   str(2 * arguments.adapters), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
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
        pathlib.Path(arguments.out).write_text(json.dumps({"model": arguments.model, "rank": arguments.rank, "type": arguments.type, "median": median,
                                                           "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
