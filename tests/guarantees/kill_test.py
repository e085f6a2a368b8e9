"""kill -9 under load, then a start with the same port and files: the next server is ready as if nothing had been.

Usage: kill_test.py [--count 50] [--streams 8] [--bar SECONDS] [--seed 1]
First a few starts without a load give the load time: from the start of the process to its first 200 at /health/ready.
Then each round kills a server that streams answers, writes a KV log and an access log, and starts the next one at once
with the same port and the same files. It must come up (again and again on the same port), answer a greedy canary to the
last digit, and find both logs in order. With --bar every start under load must be ready within the load time + BAR;
without it times are only printed. The load time is the median, because other work on the machine makes single starts
slow.
Exit codes: 0 kept, 1 broken, 77 no binary or no model.
"""
import argparse
import http.client
import json
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import running_server
from running_server import BINARY, Server, progress

UNDISTURBED_STARTS = 5


def server_args(folder):
    return ("--max-num-seqs", 4, "--ttft-target-ms", 0, "--kv-log", folder / "kv.db", "--access-log",
            folder / "access.log", "--kv-budget", "0.3", "--api-keys", folder / "keys")


def start(folder, port, key):
    """The server, and the seconds until it was ready."""
    began = time.monotonic()
    server = Server(*server_args(folder), port=port)
    while server.ask("/health/ready", key=key)[0] != 200:
        time.sleep(0.005)
    return server, time.monotonic() - began


def stream(server, body, key, pieces):
    """Reads until the server is gone."""
    try:
        with server.response("/v1/completions", body, key) as response:
            for _ in running_server.events_of(response):
                pieces.append(1)
    except (OSError, http.client.HTTPException, ValueError):
        pass


def load_and_kill(server, rng, num_streams, key):
    """True when it was killed while answers streamed."""
    pieces = []
    bodies = [{"prompt": running_server.random_prompt(rng, rng.randint(1, 300)), "max_tokens": 500,
               "ignore_eos": True, "stream": True} for _ in range(num_streams)]
    clients = [threading.Thread(target=stream, args=(server, body, key, pieces)) for body in bodies]
    for client in clients:
        client.start()
    server.wait_until(lambda m: m["requests_running"] > 0 and m["generation_tokens_total"] > 4, "a load", key=key)
    time.sleep(rng.random() * 0.3)
    was_alive = server.process.poll() is None
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    for client in clients:
        client.join()
    return was_alive and len(pieces) > 0


def broken_files(folder):
    """What a start after a kill should not find."""
    failures = []
    for line in (folder / "access.log").read_text().splitlines()[:-1]:  # the last one may be cut
        try:
            json.loads(line)
        except ValueError:
            failures.append(f"access log: {line[:200]}")
    explained = subprocess.run([BINARY, "kv", "explain", folder / "kv.db", "--json"], capture_output=True,
                               env=running_server.environment())
    if explained.returncode != 0:
        failures.append(f"kv log: {explained.stderr.decode()[:200]}")
    return failures


def make_key(folder):
    made = subprocess.run([BINARY, "keys", "add", "ann", "--file", folder / "keys", "--json"], capture_output=True,
                          check=True, env=running_server.environment())
    return json.loads(made.stdout)["key"]


def undisturbed_starts(folder, key):
    """Seconds each, the canary's answer, and the port to use from now on."""
    seconds, port = [], 0
    for _ in range(UNDISTURBED_STARTS):
        server, took = start(folder, port, key)
        with server:
            canary, port = running_server.canary_answer(server, key), server.port
            server.stop()
        seconds.append(took)
    return seconds, canary, port


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--bar", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    running_server.require_model()
    rng, failures, restarts = random.Random(options.seed), [], []
    with tempfile.TemporaryDirectory(prefix="kvasir-kill-") as name:
        folder = pathlib.Path(name)
        key = make_key(folder)
        undisturbed, canary, port = undisturbed_starts(folder, key)
        load_s = statistics.median(undisturbed)
        server, _ = start(folder, port, key)
        for number in range(options.count):
            with server:
                if not load_and_kill(server, rng, options.streams, key):
                    failures.append(f"round {number}: the server was not under load when it was killed")
            server, took = start(folder, port, key)
            restarts.append(took)
            if took > load_s + options.bar:
                failures.append(f"round {number}: ready after {took:.2f} s, the load time is {load_s:.2f} s")
            if running_server.canary_answer(server, key) != canary:
                failures.append(f"round {number}: the canary answers differently")
            failures += [f"round {number}: {text}" for text in broken_files(folder)]
            progress(f"round {number + 1}: ready after {took:.2f} s, {len(failures)} failures")
        with server:
            if server.stop() != 0:
                failures.append(f"the last server ended with {server.process.returncode}")
    return running_server.report(
        failures, rounds=options.count, load_s=round(load_s, 3), undisturbed_s=[round(s, 3) for s in undisturbed],
        restart_median_s=round(statistics.median(restarts), 3), restart_most_s=round(max(restarts), 3))


if __name__ == "__main__":
    raise SystemExit(main())
