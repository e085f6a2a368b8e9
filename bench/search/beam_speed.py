#!/usr/bin/env python3
"""How fast a server searches with beams, over how fast it draws as many answers: both in turn, tokens that are run a second.

Usage: beam_speed.py MODEL [--width N] [--tokens N] [--prompt N] [--rounds N] [--out FILE]
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))


def seconds(port, salt, prompt, width, tokens, is_beam):
    body = {"prompt": [7 + salt] + [100 + i % 900 for i in range(prompt - 1)], "max_tokens": tokens, "n": width,
            "ignore_eos": True, "use_beam_search": is_beam, "seed": salt}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    begin = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    spent = time.monotonic() - begin
    connection.close()
    assert len(answer["choices"]) == width, answer
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out")
    args = parser.parse_args()
    server = subprocess.Popen([KVASIR, "serve", args.model, "--port", "0", "--json", "--speculate", "off"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1])
    rates = {"drawn": [], "beams": []}
    try:
        for salt in range(args.rounds + 1):
            for kind in rates:
                # The prompt's own time is taken off: one answer of one token, of another prompt of that length.
                first = seconds(port, 3000 + 2 * salt + (kind == "beams"), args.prompt, 1, 1, False)
                spent = seconds(port, 1000 + 2 * salt + (kind == "beams"), args.prompt, args.width, args.tokens, kind == "beams")
                if salt > 0:
                    rates[kind].append(args.width * args.tokens / (spent - first))
    finally:
        server.terminate()
        server.wait()
    ratios = [b / d for b, d in zip(rates["beams"], rates["drawn"])]
    report = {"model": args.model, "width": args.width, "tokens": args.tokens, "prompt": args.prompt, "rates": rates,
              "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios)}
    print(f"{args.width} drawn {statistics.median(rates['drawn']):.0f} tokens/s, {args.width} beams "
          f"{statistics.median(rates['beams']):.0f}, ratio {report['ratio']:.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
