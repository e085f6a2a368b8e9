"""SIGTERM under load: what runs ends whole inside the drain window, what comes gets 503, the exit code is 0.

Usage: drain_test.py [--count 50] [--streams 8] [--seed 1]
Each round starts a server, lets some streams and whole answers run and some wait in the queue, sends SIGTERM and then
checks: every request that was accepted ends with its finish reason and, streamed, with [DONE]; once the server is not
ready a new request gets 503 as long as anything runs; the process exits with 0. In every fifth round a second SIGTERM
follows: nothing has to end whole then, but what is cut off says so by an error, never by a stream that is silently
short, and the exit code is 130. How long that took is printed, and checked only against --second-signal-bar, in
seconds.
Exit codes: 0 kept, 1 broken, 77 no binary or no model.
"""
import argparse
import http.client
import json
import random
import signal
import threading
import time

import running_server
from running_server import Server, progress

SERVER_ARGS = ("--max-num-seqs", 4, "--ttft-target-ms", 0, "--drain-timeout", 600)
HURRIED_EVERY = 5
INTERRUPTED = 130  # exit code after a second signal


class Client(threading.Thread):
    """One request, and what came of it."""

    def __init__(self, server, body):
        super().__init__()
        self.server, self.body = server, body
        self.status, self.finish_reasons, self.ended, self.error = None, [], False, None
        self.start()

    def run(self):
        try:
            with self.server.response("/v1/completions", self.body) as response:
                self.status = response.status
                is_stream = self.body["stream"] and self.status == 200
                self.read_stream(response) if is_stream else self.read_whole(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = f"{type(error).__name__}: {error}"

    def read_stream(self, response):
        for event in running_server.events_of(response):
            if event == "[DONE]":
                self.ended = True
            elif "error" in event:
                self.error = event["error"]["code"]
            else:
                self.finish_reasons += [c["finish_reason"] for c in event["choices"] if c["finish_reason"]]

    def read_whole(self, response):
        answer = json.load(response)
        if "error" in answer:
            self.error = answer["error"]["code"]
        else:
            self.finish_reasons = [choice["finish_reason"] for choice in answer["choices"]]
            self.ended = True

    def is_whole(self):
        return self.status == 200 and self.ended and self.finish_reasons == ["length"] and self.error is None

    def __str__(self):
        return f"status {self.status}, {self.finish_reasons}, ended {self.ended}, error {self.error}, {self.body}"


def make_body(rng, max_tokens):
    return {"prompt": running_server.random_prompt(rng, rng.randint(1, 80)), "max_tokens": max_tokens,
            "ignore_eos": True, "temperature": 0, "stream": rng.random() < 0.7}


def refusals(server, running):
    """What is wrong with the answers to whoever comes while the server drains, and how many were asked for while
    something ran; afterwards the server may be gone."""
    failures, num_asked = [], 0
    for path, body in (("/health/ready", None), ("/v1/completions", b'{"prompt": "x", "max_tokens": 1}')):
        try:
            with server.response(path, body) as response:
                answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            response, answer = None, repr(error)
        if not any(client.is_alive() for client in running):
            continue
        num_asked += 1
        if response is None or response.status != 503:
            failures.append(f"{path} while draining got {response and response.status}: {answer[:200]}")
        elif body and not response.getheader("Retry-After"):
            failures.append(f"{path} while draining came without Retry-After: {answer[:200]}")
    return failures, num_asked


def await_drain(server):
    """The signal has arrived when the server is no longer ready, or gone."""
    try:
        while server.ask("/health/ready")[0] == 200:
            time.sleep(0.001)
    except (OSError, http.client.HTTPException):
        pass


def one_round(rng, num_streams, is_hurried, figures):
    with Server(*SERVER_ARGS) as server:
        max_tokens = 2000 if is_hurried else rng.randint(40, 120)
        clients = [Client(server, make_body(rng, max_tokens)) for _ in range(num_streams)]
        server.wait_until(lambda m: m["requests_running"] + m["requests_waiting"] == num_streams
                          and m["generation_tokens_total"] > 0, "a full house")
        time.sleep(rng.random() * 0.2)
        server.process.send_signal(signal.SIGTERM)
        await_drain(server)
        failures, num_asked = refusals(server, clients)
        figures["refusals"] += num_asked
        if is_hurried:
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
        exit_code = server.process.wait(running_server.HANG_S)
        if is_hurried:
            figures["second_signal_s"].append(round(time.monotonic() - began, 2))
        if exit_code != (INTERRUPTED if is_hurried else 0):
            failures.append(f"the server exited with {exit_code}: {server.log()[-300:]}")
        for client in clients:
            client.join()
            figures["whole"] += client.is_whole()
            if not client.is_whole() and not (is_hurried and client.error == "shutting_down"):
                failures.append(str(client))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--second-signal-bar", type=float, default=float("inf"))
    options = parser.parse_args()
    running_server.require_model()
    rng = random.Random(options.seed)
    failures, figures = [], {"refusals": 0, "whole": 0, "second_signal_s": []}
    for number in range(options.count):
        is_hurried = number % HURRIED_EVERY == HURRIED_EVERY - 1
        failures += [f"round {number}: {text}" for text in one_round(rng, options.streams, is_hurried, figures)]
        progress(f"round {number + 1}: {figures['whole']} whole, {figures['refusals']} refusals, "
                 f"{len(failures)} failures")
    if not figures["refusals"]:
        failures.append("no refusal was seen")
    failures += [f"a second signal took {seconds} s" for seconds in figures["second_signal_s"]
                 if seconds > options.second_signal_bar]
    return running_server.report(failures, rounds=options.count, **figures)


if __name__ == "__main__":
    raise SystemExit(main())
