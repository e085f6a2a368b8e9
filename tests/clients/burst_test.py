#!/usr/bin/env python3
"""500 requests of 1,024 + 128 tokens at once, in the shapes of `vllm bench serve`: all are answered whole.

bench/load/burst.py sends them to a server with its own settings and a tiny model, which computes as a large one does.

Usage: burst_test.py [--model NAME] [--count N]
Exits 0 when all are answered, 1 when one is not, and 77 (skipped) without binary or model.
"""
import argparse
import subprocess
import sys

import served

TINY = served.ROOT / "tests/cases/models/llama-f32.gguf"
TEXTS = [served.ROOT / "docs" / name for name in ("SERVING.md", "KV.md", "API.md")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(TINY))
    parser.add_argument("--count", type=int, default=500)
    arguments = parser.parse_args()
    served.need_model(arguments.model)
    script = [sys.executable, "-B", served.ROOT / "bench/load/burst.py"]
    statuses = []
    with served.serving(arguments.model) as server:
        for api in ("completions", "chat"):
            command = [*script, server.url, served.name_of(arguments.model), *TEXTS, "--api", api,
                       "--count", str(arguments.count)]
            statuses.append(subprocess.run(command).returncode)
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
