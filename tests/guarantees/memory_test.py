"""`--memory SIZE` is held under the worst mix of requests, and a cgroup limit 5% above it kills nothing.

Usage: memory_test.py [--sizes 600MiB 1GiB] [--minutes 2] [--only PART ...] [--without PART ...] [--no-cgroup]
First long prompts fill the prefix cache, so that all KV memory has been touched. Then the mix, all at once for
--minutes: long contexts, n=16 with 20 logprobs, scored prompts with 20 logprobs, embeddings, texts of many tokens,
bodies of almost 8 MiB, half-sent ones, readers that take nothing, 64 idle connections (parts: contexts, choices, scores,
embeddings, texts, bodies, half_bodies, stalled, idle). Checked for each size: VmHWM, which counts all of the process
including mapped files, is at most SIZE + 3%; the server ends with 0 and a canary answers the same afterwards. Then
again in a memory cgroup with a limit of SIZE + 5%: nothing is killed. Kvasir packs the weights into memory of its own
and gives the pages of the model's file back, but for the rows of token embeddings, which it reads from the mapped
file: they count in VmHWM (peak_file_mib, with the program itself), as the promise is about the whole process. In the
cgroup cached pages of files count too, until somebody needs the memory. Where no cgroup can be made the test says so.
Exit codes: 0 held, 1 not, 77 no binary or no model.
"""
import argparse
import contextlib
import http.client
import itertools
import json
import random
import socket
import threading
import time

import running_server
from memory_group import MemoryGroup
from running_server import Server, progress

UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
OVER_BUDGET = 1.03
OVER_LIMIT = 1.05
BODY_BYTES = 8_000_000
LONG_TOKEN = 9  # "<issue_comment>"
SERVER_ARGS = ("--ttft-target-ms", 0)


def size_bytes(text):
    return round(float(text[:-3]) * UNITS[text[-3:]])


class Mix:
    """Each part is a method that asks once; `run` repeats the parts from threads until the time is over."""
    PARTS = {"contexts": 8, "choices": 4, "scores": 3, "embeddings": 4, "texts": 4, "bodies": 6, "half_bodies": 16, "stalled": 24,
             "idle": 64}

    def __init__(self, server, parts, length, end):
        self.server, self.parts, self.length, self.end = server, parts, length, end
        self.counts = {part: 0 for part in parts}
        self.answers = {}
        self.sockets = set()

    def run(self):
        threads = [threading.Thread(target=self.repeat, args=(part, number), daemon=True)
                   for part in self.parts for number in range(self.PARTS[part])]
        for thread in threads:
            thread.start()
        while time.monotonic() < self.end and self.server.process.poll() is None:
            time.sleep(0.5)
        while any(thread.is_alive() for thread in threads):
            for connection in list(self.sockets):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            time.sleep(0.1)

    def repeat(self, part, number):
        rng = random.Random(f"{part}-{number}")
        while time.monotonic() < self.end:
            try:
                getattr(self, part)(rng)
            except (OSError, http.client.HTTPException):
                pass  # hurried off; what counts is whether the server is alive in the end
            self.counts[part] += 1

    def ask(self, path, body):
        """The answer is read and dropped: this process shall not be what is large."""
        connection = running_server.connect(self.server.port)
        connection.connect()
        with self.registered(connection.sock):
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            key = f"{path} {response.status}"
            self.answers[key] = self.answers.get(key, 0) + 1
            while response.read(1 << 16):
                pass

    def contexts(self, rng):
        length = min(self.length, rng.choice((2000, 4000, 8000)))
        self.ask("/v1/completions", {"prompt": running_server.random_prompt(rng, length - 140), "max_tokens": 128,
                                     "ignore_eos": True, "stream": True})

    def choices(self, rng):
        self.ask("/v1/completions", {"prompt": running_server.random_prompt(rng, 200), "max_tokens": 400, "n": 16,
                                     "ignore_eos": True, "logprobs": 20})

    def scores(self, rng):
        prompt = running_server.random_prompt(rng, min(self.length, 4000) - 10)
        max_tokens = rng.choice((0, 1))  # layer by layer, and as everybody
        self.ask("/v1/completions", {"prompt": prompt, "max_tokens": max_tokens, "echo": True, "logprobs": 20})

    def embeddings(self, rng):
        count, length = rng.choice(((128, 100), (2048, 1)))
        self.ask("/v1/embeddings", {"input": [running_server.random_prompt(rng, length) for _ in range(count)]})

    def texts(self, rng):
        """Of tokens that are longer than their numbers."""
        self.ask("/detokenize", {"tokens": [LONG_TOKEN] * rng.randrange(10_000, 600_000)})

    def bodies(self, rng):
        prompt = rng.choice(("word " * (BODY_BYTES // 5), list(range(1000, 2000)) * (BODY_BYTES // 6000)))
        self.ask(rng.choice(("/v1/completions", "/tokenize")), {"prompt": prompt})

    def half_bodies(self, rng):
        with self.connection() as connection:
            connection.sendall(self.head(BODY_BYTES) + b'{"prompt": "' + b"x" * (BODY_BYTES - 100_000))
            self.rest(rng.uniform(5, 20))

    def stalled(self, rng):
        body = {"prompt": running_server.random_prompt(rng, 20), "max_tokens": 1000, "n": 4, "ignore_eos": True,
                "logprobs": 20, "stream": True}
        payload = json.dumps(body).encode()
        with self.connection() as connection:
            connection.sendall(self.head(len(payload)) + payload)
            self.rest(rng.uniform(20, 60))

    def idle(self, rng):
        with self.connection() as connection:
            self.rest(rng.uniform(30, 70))

    def rest(self, seconds):
        time.sleep(max(0, min(seconds, self.end - time.monotonic())))

    @contextlib.contextmanager
    def registered(self, connection):
        """Open until the block or the time is over."""
        self.sockets.add(connection)
        try:
            yield connection
        finally:
            self.sockets.discard(connection)
            connection.close()

    def connection(self):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that little waits in the kernel
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.server.port))
        return self.registered(connection)

    @staticmethod
    def head(num_bytes):
        return (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % num_bytes)


def fill_cache(server, length):
    """Different prompts until the KV cache has held more tokens than there is room for; returns what is resident."""
    rng = random.Random(0)
    metrics = server.metrics()
    while metrics["prompt_tokens_total"] < 1.1 * 16 * metrics["kv_blocks"]:
        server.complete({"prompt": running_server.random_prompt(rng, min(length - 10, 2000)), "max_tokens": 1})
        metrics = server.metrics()
    return server.status_bytes("VmRSS")


def watch(server, peaks):
    """The greatest mapped-file and anonymous parts: /proc keeps a maximum only of the sum."""
    while True:
        try:
            for field in ("RssAnon", "RssFile"):
                peaks[field] = max(peaks[field], server.status_bytes(field))
        except (OSError, TypeError):  # it has ended
            return
        time.sleep(0.05)


def hold(size, minutes, parts, group):
    """One server under the mix: what went wrong, and the figures."""
    budget, failures, peaks = size_bytes(size), [], {"RssAnon": 0, "RssFile": 0}
    in_child = group.enter if group else lambda: None
    with Server(*SERVER_ARGS, kvasir_options=("--memory", size), in_child=in_child) as server:
        canary = running_server.canary_answer(server)
        threading.Thread(target=watch, args=(server, peaks), daemon=True).start()
        length = server.ask("/v1/models")[1]["data"][0]["max_model_len"]
        filled = fill_cache(server, length)
        mix = Mix(server, parts, length, time.monotonic() + minutes * 60)
        mix.run()
        if server.process.poll() is not None:
            return [f"{size}: the server ended with {server.process.returncode}: {server.log()[-300:]}"], {}
        metrics = server.wait_idle()
        peak = server.status_bytes("VmHWM")
        if running_server.canary_answer(server) != canary:
            failures.append(f"{size}: the canary answers differently")
        if server.stop() != 0:
            failures.append(f"{size}: the server ended with {server.process.returncode}: {server.log()[-300:]}")
    if mix.answers and not any(key.endswith(" 200") for key in mix.answers):
        failures.append(f"{size}: nobody was answered, so nothing was held: {mix.answers}")
    if group is None and peak > budget * OVER_BUDGET:
        failures.append(f"{size}: {peak / 2**20:.1f} MiB at the peak, {100 * peak / budget - 100:.1f}% over")
    return failures, {
        "filled_mib": round(filled / 2**20, 1), "peak_mib": round(peak / 2**20, 1),
        "of_budget": round(peak / budget, 3),
        "peak_anonymous_mib": round(peaks["RssAnon"] / 2**20, 1), "peak_file_mib": round(peaks["RssFile"] / 2**20, 1),
        "kv_peak_mib": round(metrics["kv_bytes_peak"] / 2**20, 1), "kv_mib": round(metrics["kv_bytes"] / 2**20, 1),
        "preemptions": metrics["preemptions_total"], "asked": mix.counts, "answers": mix.answers}


def hold_in_group(size, minutes, parts):
    try:
        group = MemoryGroup(round(size_bytes(size) * OVER_LIMIT))
    except OSError as error:
        progress(f"no memory cgroup can be made here: {error}")
        return [], {"not_checked": str(error)}
    try:
        failures, figures = hold(size, minutes, parts, group)
        figures["group_peak_mib"] = round(group.peak_bytes() / 2**20, 1)
        if group.num_killed():
            failures.append(f"{size} + 5% as a limit: {group.num_killed()} processes were killed")
        return failures, figures
    finally:
        group.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["600MiB", "1GiB"])
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--only", nargs="+", choices=Mix.PARTS, default=list(Mix.PARTS))
    parser.add_argument("--without", nargs="+", choices=Mix.PARTS, default=[])
    parser.add_argument("--no-cgroup", action="store_true")
    options = parser.parse_args()
    running_server.require_model()
    parts = [part for part in options.only if part not in options.without]
    failures, figures = [], {}
    for size, in_group in itertools.product(options.sizes, (False, True)):
        if in_group and options.no_cgroup:
            continue
        run = hold_in_group if in_group else lambda *arguments: hold(*arguments, None)
        found, measured = run(size, options.minutes, parts)
        failures += found
        figures[f"{size}{' in a cgroup' if in_group else ''}"] = measured
        progress(f"{size}, {'in a cgroup' if in_group else 'free'}: {json.dumps(measured)}, failures {found}")
    return running_server.report(failures, minutes=options.minutes, parts=parts, runs=figures)


if __name__ == "__main__":
    raise SystemExit(main())
