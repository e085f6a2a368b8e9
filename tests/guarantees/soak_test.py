"""Mixed load for minutes with 20% disconnects and 5% bad requests: memory stays flat, everything comes back to base.

Usage: soak_test.py [--minutes 30] [--workers 12] [--seed 1]
The minutes begin after a warm-up of 600 requests.
Checked: resident memory grows by at most 1 KiB a request over the second half (a line through all samples); file
descriptors, running, waiting and KV blocks are back to base at the end; good requests succeed, bad ones get their
4xx, and a greedy canary answers the same to the last digit throughout.
Exit codes: 0 kept, 1 broken, 77 no binary or no model.
"""
import argparse
import json
import random
import socket
import threading
import time

import running_server
from running_server import Server, progress

MAX_GROWTH_BYTES_PER_REQUEST = 1024
SLACK_BYTES = 2 << 20  # what one unlucky batch moves in the allocator: in a short run more than the bar
WARM_UP_REQUESTS = 600
SAMPLE_EVERY_S = 2
CANARY_EVERY_SAMPLES = 15
# So small a cache has touched all of its memory within the warm-up. Nobody is refused for being late.
SERVER_ARGS = ("--max-num-seqs", 8, "--kv-cache-tokens", 1024, "--ttft-target-ms", 0)

BAD_REQUESTS = (
    ("/v1/completions", b"{", 400),
    ("/v1/completions", {"prompt": "x", "max_tokens": -1}, 400),
    ("/v1/completions", {"prompt": "x", "temperature": "hot"}, 400),
    ("/v1/completions", {"prompt": [1, 99_999_999]}, 400),
    ("/v1/chat/completions", {"messages": []}, 400),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "model": "nobody"}, 404),
    ("/v1/completions", {"prompt": "x", "max_tokens": 1_000_000}, 400),
    ("/v1/nothing", {}, 404),
)


class Soak:
    def __init__(self, server, seed):
        self.server, self.seed = server, seed
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.counts = {"good": 0, "disconnected": 0, "bad": 0}
        self.failures = []

    def num_requests(self):
        with self.lock:
            return sum(self.counts.values())

    def work(self, worker):
        rng = random.Random(f"{self.seed}-{worker}")
        while not self.over.is_set():
            kind = rng.choices(("good", "disconnected", "bad"), (75, 20, 5))[0]
            try:
                problem = getattr(self, f"send_{kind}")(rng)
            except Exception as error:  # a worker that dies silently would end the load
                problem = f"{type(error).__name__}: {error}"
            with self.lock:
                self.counts[kind] += 1
                if problem:
                    self.failures.append(f"{kind}: {problem}")

    def send_good(self, rng):
        path, body = good_request(rng)
        with self.server.response(path, body) as response:
            answer = response.read()
        if response.status != 200:
            return f"{path} got {response.status}: {answer[:200]}"
        if body.get("stream") and not answer.endswith(b"data: [DONE]\n\n"):
            return f"{path}: the stream ended with {answer[-100:]}"
        return None

    def send_bad(self, rng):
        path, body, expected = rng.choice(BAD_REQUESTS)
        status, answer = self.server.ask(path, body)
        right = status == expected and set(answer["error"]) == {"message", "type", "param", "code"}
        return None if right else f"{path} {body} got {status} {answer}, not {expected}"

    def send_disconnected(self, rng):
        path, body = good_request(rng)
        connection = running_server.connect(self.server.port)
        connection.request("POST", path, json.dumps(body))
        connection.sock.settimeout(rng.choice((0.001, 0.05, 0.3)))
        try:
            connection.sock.recv(rng.choice((1, 4096)))
        except socket.timeout:
            pass  # gone before the answer began
        connection.sock.close()
        connection.close()
        return None


def good_request(rng):
    prompt = running_server.random_prompt(rng, rng.choice((1, 5, 20, 60, 200)))
    common = {"max_tokens": rng.choice((1, 4, 16)), "temperature": rng.choice((0, 1)), "stream": rng.random() < 0.5}
    kind = rng.random()
    if kind < 0.3:
        words = " ".join(str(token) for token in prompt[:30])
        return "/v1/chat/completions", common | {"messages": [{"role": "user", "content": words}]}
    if kind < 0.4:
        return "/v1/embeddings", {"input": prompt}
    if kind < 0.5:
        return "/v1/completions", common | {"prompt": prompt, "n": 3, "logprobs": 5}
    if kind < 0.55:
        return "/v1/completions", {"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": 2}
    return "/v1/completions", common | {"prompt": prompt}


def growth_per_request(samples):
    """Slope of the least-squares line through (requests, bytes)."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


def sample_until(soak, end, canary):
    """(requests, resident bytes, open files) every few seconds."""
    samples, began = [], time.monotonic()
    while time.monotonic() < end:
        time.sleep(SAMPLE_EVERY_S)
        samples.append((soak.num_requests(), soak.server.status_bytes("VmRSS")))
        if len(samples) % CANARY_EVERY_SAMPLES == 0:
            if running_server.canary_answer(soak.server) != canary:
                soak.failures.append("the canary answered differently")
            progress(f"{time.monotonic() - began:.0f} s: {soak.counts}, {samples[-1][1] / 2**20:.1f} MiB, "
                     f"{len(soak.failures)} failures")
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    running_server.require_model()
    with Server(*SERVER_ARGS) as server:
        canary = running_server.canary_answer(server)
        server.wait_idle()
        base_files = server.num_open_files()
        soak = Soak(server, options.seed)
        workers = [threading.Thread(target=soak.work, args=(i,)) for i in range(options.workers)]
        for worker in workers:
            worker.start()
        while soak.num_requests() < WARM_UP_REQUESTS:
            time.sleep(SAMPLE_EVERY_S)
        samples = sample_until(soak, time.monotonic() + options.minutes * 60, canary)
        soak.over.set()
        for worker in workers:
            worker.join()
        last = server.wait_idle()
        server.wait_until(lambda m: server.num_open_files() <= base_files and m["http_connections"] == 1,
                          f"open files back at {base_files}")
        if running_server.canary_answer(server) != canary:
            soak.failures.append("the canary answered differently at the end")
        second_half = samples[len(samples) // 2:]
        growth = growth_per_request(second_half)
        if growth * (second_half[-1][0] - second_half[0][0]) > SLACK_BYTES and growth > MAX_GROWTH_BYTES_PER_REQUEST:
            soak.failures.append(f"memory grows by {growth:.0f} bytes a request")
        if last["requests_failed_total"]:
            soak.failures.append(f"{last['requests_failed_total']:.0f} requests failed in the engine")
        exit_code = server.stop()
        if exit_code != 0:
            soak.failures.append(f"the server ended with {exit_code}")
        return running_server.report(
            soak.failures, minutes=options.minutes, requests=soak.counts, growth_bytes_per_request=round(growth, 1),
            middle_mib=round(second_half[0][1] / 2**20, 1), last_mib=round(samples[-1][1] / 2**20, 1),
            base_files=base_files, preemptions=last["preemptions_total"],
            aborts=last['http_aborts_total{cause="disconnected"}'])


if __name__ == "__main__":
    raise SystemExit(main())
