"""Requests whose client goes while they wait, during prefill and during decode: a step later their blocks are free.

Usage: aborts_test.py [--count 1000] [--seed 1]
Single requests and bursts of up to 12 on four seats, streaming and not, are cut off at random moments, by RST or by
FIN. The server counts the clients it misses (http_aborts_total) and its steps (step_seconds_count): from the step in which
it has missed the last one at most one more may run until nothing runs, waits or holds a block. Nothing else runs, so
steps stop when the last request has left. At the end no connection is left over and a greedy canary answers the same.
Exit codes: 0 kept, 1 broken, 77 no binary or no model.
"""
import argparse
import collections
import json
import random
import socket
import struct
import time

import running_server
from running_server import Server, progress

MISSED = 'http_aborts_total{cause="disconnected"}'
NUM_SEATS = 4
SERVER_ARGS = ("--max-num-seqs", NUM_SEATS, "--ttft-target-ms", 0)
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def endless_request(rng, phase):
    """A request that is not done before its client leaves; with a long prompt where it is to be in prefill."""
    num_tokens = rng.randint(1500, 4000) if phase == "prefill" else rng.randint(1, 120)
    return {"prompt": running_server.random_prompt(rng, num_tokens), "max_tokens": 3000, "ignore_eos": True,
            "temperature": rng.choice((0, 1)), "stream": phase == "decode" or rng.random() < 0.5,
            "n": rng.choice((1, 1, 1, 3))}


def send(server, body):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=running_server.HANG_S)
    payload = json.dumps(body).encode()
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
    return connection


def await_tokens(connection, num_tokens):
    """Until the stream has shown some."""
    seen = b""
    while seen.count(b'"text"') < num_tokens:
        piece = connection.recv(65536)
        if not piece:
            raise RuntimeError(f"the stream ended: {seen[-300:]}")
        seen += piece


def leave(connection, rng):
    if rng.random() < 0.5:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.close()


class Aborts:
    def __init__(self, server, rng):
        self.server, self.rng = server, rng
        self.missed = self.server.metrics()[MISSED]
        self.late_steps = collections.Counter()
        self.phases = collections.Counter()
        self.failures = []

    def one(self):
        """A single request, cut off in prefill or while it streams."""
        phase = self.rng.choice(("prefill", "decode"))
        connection = send(self.server, endless_request(self.rng, phase))
        if phase == "decode":
            await_tokens(connection, self.rng.randint(1, 8))
        else:
            self.server.wait_until(lambda m: m["requests_running"] > 0, "a start")
            time.sleep(self.rng.random() * 0.1)
        self.phases[f"alone in {phase}"] += 1
        self.leave_all([connection])

    def burst(self, size):
        """More requests than seats: some wait, some compute their prompt, some stream."""
        phases = self.rng.choice((("prefill", "any"), ("any",)))
        bodies = [endless_request(self.rng, self.rng.choice(phases)) for _ in range(size)]
        connections = [send(self.server, body) for body in bodies]
        num_choices = sum(body["n"] for body in bodies)
        self.server.wait_until(lambda m: m["requests_running"] + m["requests_waiting"] == num_choices, "all arrivals")
        time.sleep(self.rng.random())
        before = self.server.metrics()
        self.phases["choices waiting"] += int(before["requests_waiting"])
        self.phases["choices running"] += int(before["requests_running"])
        self.rng.shuffle(connections)
        self.leave_all(connections, pause_s=self.rng.choice((0, 0.03)))

    def leave_all(self, connections, pause_s=0):
        for connection in connections:
            leave(connection, self.rng)
            time.sleep(pause_s)
        self.missed += len(connections)
        noticed = self.server.wait_until(lambda m: m[MISSED] >= self.missed, "notice of all who left", pause_s=0)
        idle = self.server.wait_idle()
        late = int(idle["step_seconds_count"] - noticed["step_seconds_count"])
        self.late_steps[late] += 1
        if late > 1:
            self.failures.append(f"{late} steps ran after the last of {len(connections)} had left")
        if idle[MISSED] != self.missed:
            self.failures.append(f"{self.missed} left, {idle[MISSED]} were missed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    running_server.require_model()
    with Server(*SERVER_ARGS) as server:
        canary = running_server.canary_answer(server)
        base_files = server.num_open_files()
        server.wait_idle()
        aborts = Aborts(server, random.Random(options.seed))
        num_left, rounds = options.count, 0
        while num_left > 0:
            size = 1 if rounds % 2 else min(num_left, aborts.rng.randint(2, 12))
            aborts.one() if size == 1 else aborts.burst(size)
            num_left, rounds = num_left - size, rounds + 1
            if rounds % 20 == 0:
                progress(f"{options.count - num_left} aborts, {dict(aborts.late_steps)} steps late, "
                         f"{len(aborts.failures)} failures")
        failures = aborts.failures
        last = server.wait_until(lambda m: m["http_connections"] == 1 and server.num_open_files() <= base_files,
                                 "the end of all connections")
        if running_server.canary_answer(server) != canary:
            failures.append("the canary answers differently")
        if server.stop() != 0:
            failures.append(f"the server ended with {server.process.returncode}")
        return running_server.report(failures, aborts=options.count, phases=aborts.phases, files=base_files,
                                     rounds_by_steps_after_notice=aborts.late_steps,
                                     requests_cancelled=last["requests_cancelled_total"])


if __name__ == "__main__":
    raise SystemExit(main())
