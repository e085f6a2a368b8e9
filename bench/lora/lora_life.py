#!/usr/bin/env python3
"""What streams notice of adapters that come and go: the gaps between their tokens, calm and while adapters are loaded.

Half of the streams run with an adapter that stays, half without. Meanwhile another one is loaded and unloaded, in turn of
two files. Bars: no request fails, the longest gap is at most 5 ms longer than the longest in calm, and the adapters' bytes
are back.

Usage: lora_life.py MODEL --hidden N --queries N --keys N --wide N --layers N [--rank N] [--streams N] [--loads N] [--out FILE]
  The sizes are as scripts/make_lora_adapter.py has them.
Exit codes: 0 all held, 1 not.
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

from make_lora_adapter import SIZES, write_adapter  # noqa: E402

KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))
GROWTH_MS = 5


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


class Stream(threading.Thread):
    """Answers one behind the other; `gaps`: (when, milliseconds)."""

    def __init__(self, port, model, number):
        super().__init__(daemon=True)
        self.port, self.model, self.number = port, model, number
        self.gaps, self.failed, self.ends = [], 0, False

    def run(self):
        count = 0
        while not self.ends:
            count += 1
            body = {"model": self.model, "prompt": f"Story {self.number}.{count}: once upon a time there", "max_tokens": 200,
                    "ignore_eos": True, "temperature": 0, "stream": True}
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            events = [(time.monotonic(), line) for line in answer if line.startswith(b"data: {")]
            times = [when for when, _ in events]
            self.failed += answer.status != 200 or not any(b'"finish_reason":"length"' in line for _, line in events)
            # Others' prompts make the first ones longer, whatever is loaded.
            self.gaps += [(b, 1000 * (b - a)) for a, b in zip(times[8:], times[9:])]


def quantiles(gaps):
    ordered = sorted(gaps)
    return {"p50_ms": ordered[len(ordered) // 2], "p99_ms": ordered[len(ordered) * 99 // 100], "max_ms": ordered[-1],
            "count": len(ordered)}


def adapter_bytes(port):
    return int(float(re.search(r"kvasir_adapter_bytes\{.*\} (\S+)", ask(port, "GET", "/metrics")[1])[1]))


def load_and_unload(port, loads):
    failed = 0
    for i in range(loads):
        failed += ask(port, "POST", "/v1/load_lora_adapter", {"lora_name": "comes", "lora_path": f"b{i % 2}"})[0] != 200
        failed += ask(port, "POST", "/v1/unload_lora_adapter", {"lora_name": "comes"})[0] != 200
    return failed


def play(port, arguments):
    ask(port, "POST", "/v1/load_lora_adapter", {"lora_name": "stays", "lora_path": "b0"})
    before = adapter_bytes(port)
    streams = [Stream(port, "stays" if i % 2 else "", i) for i in range(arguments.streams)]
    for stream in streams:
        stream.start()
    time.sleep(2)
    begin = time.monotonic()
    time.sleep(arguments.seconds)
    calm_end = time.monotonic()
    failed_loads = load_and_unload(port, arguments.loads)
    end = time.monotonic()
    for stream in streams:
        stream.ends = True
    for stream in streams:
        stream.join()
    calm = quantiles([gap for stream in streams for when, gap in stream.gaps if begin < when < calm_end])
    loading = quantiles([gap for stream in streams for when, gap in stream.gaps if calm_end < when < end])
    return {"loads": arguments.loads, "seconds": end - calm_end, "failed_loads": failed_loads,
            "failed_requests": sum(stream.failed for stream in streams), "calm": calm, "loading": loading,
            "bytes_before": before, "bytes_after": adapter_bytes(port)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--loads", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30, help="of calm")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(2):
            write_adapter(pathlib.Path(folder, f"b{i}"), vars(arguments), arguments.rank, i)
        server = subprocess.Popen([KVASIR, "serve", arguments.model, "--port", "0", "--lora-dir", folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            port = next(int(found[1]) for line in server.stdout if (found := re.search(rb"http://[^ :]+:(\d+)", line)))
            result = play(port, arguments)
        finally:
            server.terminate()
            server.wait()
    print(json.dumps(result, indent=1))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    held = (result["failed_loads"] == result["failed_requests"] == 0 and result["bytes_before"] == result["bytes_after"]
            and result["loading"]["max_ms"] <= result["calm"]["max_ms"] + GROWTH_MS)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
