#!/usr/bin/env python3
"""Short requests beside long ones: beside_long.py MODEL --file TEXT [--out FILE]

The short ones are prompts of 32 tokens for answers of 8, one a second. In turn they are alone, beside prompts of
--tokens tokens of another key, beside such of their own key, beside as long ones that are scored (echo with logprobs
and no answer) and beside embeddings of them, each sent as soon as the last has ended. Target: the first token of every
short one within 2 s, and none refused.

Exit codes: 0 held, 1 not.
"""
import argparse
import contextlib
import json
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request

import compare
import outcomes
import servers

OWN = "long prompts of the same key"
BESIDE = {
    "nothing": None,
    "long prompts": ("completions", lambda ids: {"prompt": ids, "max_tokens": 1}),
    OWN: ("completions", lambda ids: {"prompt": ids, "max_tokens": 1}),
    "scoring": ("completions", lambda ids: {"prompt": ids, "max_tokens": 0, "echo": True, "logprobs": 1}),
    "embeddings": ("embeddings", lambda ids: {"input": ids}),
}


class LongRequests:
    """One after the other until it is told to stop; `seconds` has what each took, `failures` why others did not come."""

    def __init__(self, server, model, key, path, body_of, prompts):
        self.seconds, self.failures = [], []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._send, args=(server, model, key, path, body_of, prompts))

    def _send(self, server, model, key, path, body_of, prompts):
        for ids in prompts:
            if self.is_over.is_set():
                return
            body = json.dumps({"model": model, **body_of(ids)}).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{server.port}/v1/{path}", body, {
                "Content-Type": "application/json", "Authorization": f"Bearer {key}"})
            began = time.monotonic()
            try:
                with urllib.request.urlopen(request) as answer:
                    answer.read()
                self.seconds.append(time.monotonic() - began)
            except urllib.error.HTTPError as error:
                self.failures.append(str(error))
                time.sleep(int(error.headers.get("Retry-After", 1)))
            except OSError as error:
                self.failures.append(str(error))


@contextlib.contextmanager
def long_requests(*args):
    requests = LongRequests(*args)
    requests.thread.start()
    try:
        yield requests
    finally:
        requests.is_over.set()
        requests.thread.join()


def play(args, text, turn, name):
    """The results of the short ones beside the long ones of that name."""
    short = [{"at_ms": 1000.0 * (i + 1), "prompt": text.prompt(32, turn, name, i), "max_tokens": 8}
             for i in range(args.seconds)]
    with servers.keys_file(("short", "long")) as (file, keys):
        command = [*servers.commands(args.model, compare.path_of(args.model))["kvasir"], "--api-keys", file]
        with servers.running(command) as server:
            compare.warm_up(server, args.model, text, (turn, name), keys["short"])
            with contextlib.ExitStack() as stack:
                beside = None
                if BESIDE[name]:
                    prompts = (text.prompt(args.tokens, turn, name, "long", i) for i in range(10 ** 6))
                    beside = stack.enter_context(
                        long_requests(server, args.model, keys["short" if name == OWN else "long"], *BESIDE[name], prompts))
                requests = [{**request, "api_key": keys["short"]} for request in short]
                came, _, _ = compare.play(server, args.model, requests, 0)
    whole = [outcome for outcome in came if outcomes.came_whole(outcome)]
    ttfts = [outcomes.ttft_of(outcome) for outcome in whole]
    row = {"beside": name, "turn": turn, "requests": len(came), "whole": len(whole),
           "ttft_ms": {"p50": outcomes.percentile(ttfts, 0.5), "p95": outcomes.percentile(ttfts, 0.95),
                       "most": max(ttfts, default=None)},
           "long_seconds": beside.seconds if beside else [], "long_failures": beside.failures if beside else []}
    times = ", ".join(f"{point} {ms:.0f}" for point, ms in row["ttft_ms"].items() if ms is not None)
    print(f"beside {name}: {len(whole)} of {len(came)} short ones whole, TTFT in ms {times}; the long ones took "
          f"{', '.join(f'{s:.1f}' for s in row['long_seconds']) or '-'} s", file=sys.stderr, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="text that prompts are pieces of")
    parser.add_argument("--tokens", type=int, default=6000, help="of a long prompt")
    parser.add_argument("--seconds", type=int, default=30, help="each of the five")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    text = compare.text_of(args)
    rows = [play(args, text, turn, name)
            for turn in range(args.rounds) for name in (list(BESIDE) if turn % 2 == 0 else list(BESIDE)[::-1])]
    lost = sum(row["requests"] - row["whole"] for row in rows)
    most = max(row["ttft_ms"]["most"] or 0.0 for row in rows)
    unlike = sum(row["beside"] != "nothing" and (not row["long_seconds"] or bool(row["long_failures"])) for row in rows)
    held = most <= outcomes.TTFT_MS and lost == 0 and unlike == 0
    print(f"TTFT of the short ones at most {most:.0f} ms (target {outcomes.TTFT_MS}); {lost} of them did not come whole, "
          f"{unlike} times a long one neither: {'held' if held else 'MISSED'}")
    if args.out:
        pathlib.Path(args.out).write_text(
            json.dumps({"model": args.model, "long_tokens": args.tokens, "rows": rows}, indent=1) + "\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
