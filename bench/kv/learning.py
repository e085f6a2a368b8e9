#!/usr/bin/env python3
"""A server that learns its forecast from requests: which of them it keeps, and what it has learned.

    bench/kv/learning.py build/release/bin/kvasir MODEL --file TEXT --requests 40 --share 0.5
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import urllib.request


def call(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=600) as answer:
        return answer.read().decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="prompts are pieces of this text")
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--characters", type=int, default=3600, help="of a prompt")
    given = parser.parse_args()
    text = pathlib.Path(given.file).read_text(errors="ignore")
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([given.binary, "serve", given.model, "--port", "0", "--kv-policy", "ladder-learned", "--kv-budget", "0.25",
                                   "--kv-quality", "best_effort", "--kv-learn", f"{folder}/learned.json", "--kv-shadow-share", str(given.share),
                                   "--kv-learn-cpu", "0.5"], stdout=subprocess.PIPE, text=True)
        url = [server.stdout.readline() for _ in range(3)][1].split()[0]
        shadows, shares = 0, []
        for number in range(given.requests):
            prompt = text[number * given.characters:][:given.characters]
            usage = json.loads(call(url + "/v1/completions", {"prompt": prompt, "max_tokens": 16, "ignore_eos": True}))["usage"]
            shadows += usage.get("kv_shadow", False)
            if "kv_shadow" not in usage:
                shares.append(usage["kv"]["share"])
        [learning] = [row["learning"] for row in json.loads(call(url + "/v1/kv_policies")) if "learning" in row]
        server.terminate()
        server.wait(60)
    print(json.dumps({"requests": given.requests, "shadows": shadows, "other_share_mean": sum(shares) / max(1, len(shares)), **learning}))


if __name__ == "__main__":
    main()
