#!/usr/bin/env python3
"""What is cancelled holds nothing a step later, over each protocol.

Usage: cancel_test.py [--count 5] [--model NAME] [--seed 1]
Of each way to leave, --count requests are ended while their prompt is computed or while they stream: a client of
Anthropic's or of OpenAI's newer protocol that is gone, a cancel message and a closed connection of a WebSocket (beside a
request that goes on, and answers as it does alone), a cancelled gRPC call and a closed channel. The server counts those it
misses (http_aborts_total) and its steps; from the step in which it has missed one at most one more may run before no
block is held, unless another request still runs. tests/guarantees/aborts_test.py does the same with many over HTTP.
Exits 0 when all is kept, 1 when not, 77 (skipped) without binary, model or clients.
"""
import argparse
import collections
import http.client
import json
import random
import re
import sys
import time

import served

HANG_S = 300
METRIC = re.compile(r"^kvasir_(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LONG = {"max_tokens": 3000, "stream": True}
BESIDE = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0, "ignore_eos": True}


def metrics_of(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    values = collections.defaultdict(float)
    for name, labels, value in METRIC.findall(text):
        values[name] += float(value)
        if name == "http_aborts_total":
            values["aborts"] += float(value)
    return values


def wait_until(server, condition, what):
    until = time.monotonic() + HANG_S
    while not condition(metrics := metrics_of(server)):
        if time.monotonic() > until:
            raise RuntimeError(f"no {what} in {HANG_S} s: {dict(metrics)}")
    return metrics


def words(rng, phase):
    """A prompt of its own, long where it is to be left in prefill."""
    return "".join(f"{rng.randrange(1000)} " for _ in range(900 if phase == "prefill" else 20))


class Http:
    """A stream of an HTTP path whose client goes."""

    def __init__(self, server, path, body):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        self.response = None

    def await_pieces(self, marks):
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        while marks > 0:
            line = self.response.readline()
            assert line, "the stream ended"
            marks -= line.startswith(b"data: ")

    def leave(self):
        self.connection.close()
        if self.response is not None:  # which keeps the socket open
            self.response.close()


class Messages(Http):
    def __init__(self, server, prompt):
        super().__init__(server, "/v1/messages", LONG | {"messages": [{"role": "user", "content": prompt}]})


class Responses(Http):
    def __init__(self, server, prompt):
        body = {"input": prompt, "stream": True, "max_output_tokens": 3000, "ignore_eos": True}
        super().__init__(server, "/v1/responses", body)


class WebSocket:
    """A connection that closes in the middle of a request."""

    def __init__(self, server, prompt):
        from websockets.sync.client import connect
        url = f"ws://127.0.0.1:{server.port}/v1/stream"
        try:
            self.connection = connect(url, max_size=None, legacy=True)
        except TypeError:  # versions before 17 know no other way
            self.connection = connect(url, max_size=None)
        self.ask("long", LONG | {"prompt": prompt, "ignore_eos": True})

    def ask(self, name, body):
        self.connection.send(json.dumps({"id": name, "path": "/v1/completions", "body": body}))

    def await_pieces(self, marks):
        while marks > 0:
            message = json.loads(self.connection.recv(timeout=HANG_S))
            marks -= message["id"] == "long" and "event" in message

    def leave(self):
        self.connection.close()


class WebSocketCancel(WebSocket):
    """A request that is cancelled by a message, beside one on the same connection that goes on."""

    def __init__(self, server, prompt):
        super().__init__(server, prompt)
        self.ask("beside", BESIDE)

    def leave(self):
        self.connection.send(json.dumps({"id": "long", "cancel": True}))
        ended = {}
        while len(ended) < 2:
            message = json.loads(self.connection.recv(timeout=HANG_S))
            if "end" in message or "body" in message:
                ended[message["id"]] = message
        self.connection.close()
        assert ended["long"] == {"id": "long", "end": "cancelled"}, ended["long"]
        assert ended["beside"]["status"] == 200, ended["beside"]
        self.beside = ended["beside"]["body"]["choices"][0]["text"]


class Grpc:
    def __init__(self, server, prompt):
        import grpc
        from grpc_client import Service
        # Else gRPC shares connections between channels.
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", [("grpc.use_local_subchannel_pool", 1)])
        service = Service(self.channel)
        body = {"prompt": prompt, "max_tokens": 3000, "ignore_eos": True}
        self.call = service.calls["Generate"](service.message("Generate", body), timeout=HANG_S)

    def await_pieces(self, marks):
        for _ in range(marks):
            next(self.call)

    def leave(self):
        self.call.cancel()


class GrpcClose(Grpc):
    """A channel that closes."""

    def leave(self):
        self.channel.close()


WAYS = (Messages, Responses, WebSocket, WebSocketCancel, Grpc, GrpcClose)


def cancel_one(server, way, phase, rng):
    """How many steps ran after the server had missed the client, and the client."""
    before = metrics_of(server)
    client = way(server, words(rng, phase))
    if phase == "decode":
        client.await_pieces(rng.randint(2, 8))
    else:
        wait_until(server, lambda m: m["requests_running"] > 0, "start")
    client.leave()
    noticed = wait_until(server, lambda m: m["aborts"] > before["aborts"], "notice")
    idle = wait_until(server, lambda m: not (m["requests_running"] or m["requests_waiting"] or m["kv_blocks_used"]),
                      "end of all that it held")
    assert idle["aborts"] == before["aborts"] + 1, f"missed {idle['aborts'] - before['aborts']} instead of one"
    return int(idle["step_seconds_count"] - noticed["step_seconds_count"]), client


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    served.need_model(arguments.model)
    served.run_in_venv(["websockets", "grpc_reflection"])
    rng, failures = random.Random(arguments.seed), 0
    with served.serving(arguments.model, options=("--grpc-port", "0")) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
        connection.request("POST", "/v1/completions", json.dumps(BESIDE), {"Content-Type": "application/json"})
        alone = json.loads(connection.getresponse().read())["choices"][0]["text"]
        connection.close()
        for way in WAYS:
            late = collections.Counter()
            for number in range(arguments.count):
                num_steps, client = cancel_one(server, way, ("prefill", "decode")[number % 2], rng)
                late[num_steps] += 1
                if num_steps > 1 or getattr(client, "beside", alone) != alone:
                    failures += 1
                    print(f"FAILED {way.__name__}: {num_steps} steps late, beside it {getattr(client, 'beside', None)!r}")
            print(f"{way.__name__}: {arguments.count} cancelled, rounds by steps after the notice {dict(late)}")
    print(f"{arguments.count * len(WAYS) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
