#!/usr/bin/env python3
"""How much a server grows over many large schemas, beside --guide-memory.

Usage: guide_memory.py MODEL --schemas FILE.jsonl.gz [--guide-memory SIZE] [--count N]
  FILE has lines {"schema"}; the N largest below 400,000 bytes are asked for, behind 50 requests with one small schema.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

KVASIR = os.environ.get("KVASIR_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/kvasir"))
SMALL = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def anonymous_mib(pid):
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def ask(url, schema):
    body = {"messages": [{"role": "user", "content": "JSON please"}], "max_tokens": 40, "temperature": 1,
            "guided_json": schema}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=300).read()
    except urllib.error.HTTPError as error:
        error.read()  # a schema that is refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--schemas", required=True)
    parser.add_argument("--guide-memory", default="16MiB")
    parser.add_argument("--count", type=int, default=500)
    arguments = parser.parse_args()
    texts = {json.dumps(json.loads(line)["schema"]) for line in gzip.open(arguments.schemas, "rt")}
    schemas = [text for text in sorted(texts, key=len, reverse=True) if len(text) < 400_000][:arguments.count]
    server = subprocess.Popen([KVASIR, "serve", arguments.model, "--port", "0", "--guide-memory", arguments.guide_memory,
                               "--memory", "2GiB", "--max-model-len", "4096", "--max-num-seqs", "4", "--no-prefix-cache"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        url = next(found[0].decode() for line in server.stdout if (found := re.search(rb"http://[^ ]+:\d+", line)))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: ask(url, SMALL), range(50)))
            before = anonymous_mib(server.pid)
            for first in range(0, len(schemas), 50):
                list(pool.map(lambda text: ask(url, json.loads(text)), schemas[first:first + 50]))
                print(f"{first + 50} schemas: +{anonymous_mib(server.pid) - before:.1f} MiB", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
