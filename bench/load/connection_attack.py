"""How fast /health/live answers while thousands of connections hold on: slow headers and readers who take nothing.

    connection_attack.py [--headers 2000] [--readers 200] [--seconds 60] [--rate 50] [--spread S] [--descriptors N]
                         [-- WORDS]

WORDS go to `kvasir serve` (default: --ttft-target-ms 0 --max-num-seqs 200, so that all readers are let in and stream
at once). The slow headers all begin at once, or within S seconds. Each probe is a connection of its own; one that
another delayed counts from when it was due. A control asks a process that only echoes, at the same times: what the
machine itself takes. KVASIR_BINARY names the binary
(default: build/release/bin/kvasir).

Exit codes: 0 p99 within the bar (20 ms), 1 not, or the server did not survive, 77 skipped (no model).
"""
import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from attackers import attack
from servers import cpu_seconds_of, running

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("KVASIR_BINARY", ROOT / "build/release/bin/kvasir"))
MODEL = "smollm2:135m"
BAR_MS = 20.0
PROBE_LIMIT_S = 5
QUIET_SHARE = 0.25  # of the time of the attack, before it
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def ask(port, request):
    """Whether the answer came; its bytes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PROBE_LIMIT_S) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(4096):
            answer += piece
        return answer.startswith(b"HTTP/1.1 200 ")


class Prober(threading.Thread):
    """Asks at a steady rate; `times_ms` of those answered and `failures`."""

    def __init__(self, port, rate, seconds):
        super().__init__()
        self.port, self.period_s, self.seconds = port, 1 / rate, seconds
        self.times_ms, self.failures = [], 0
        self.slow_seconds = set()  # in which at least one missed the bar

    def run(self):
        begin = time.perf_counter()
        ended = begin
        num_probes = int(self.seconds / self.period_s)
        for i in range(num_probes):
            if ended > begin + self.seconds + PROBE_LIMIT_S:
                self.failures += num_probes - i
                return
            due = begin + i * self.period_s
            time.sleep(max(0, due - time.perf_counter()))
            # Late for another probe: that is the server's; late for the sleep: ours.
            start = due if ended > due else time.perf_counter()
            try:
                good = ask(self.port, LIVE)
            except OSError:
                good = False
            ended = time.perf_counter()
            self.times_ms.append((ended - start) * 1e3)
            self.failures += not good
            if self.times_ms[-1] > BAR_MS:
                self.slow_seconds.add(int(due - begin))

    def line(self, what):
        shares = [f"p{share * 100:g} {percentile(self.times_ms, share):.2f} ms" for share in (0.5, 0.99, 0.999)]
        num_slow = sum(time_ms > BAR_MS for time_ms in self.times_ms)
        return (f"{what}: {', '.join(shares)}, max {max(self.times_ms):.2f} ms; {num_slow} of {len(self.times_ms)} "
                f"beyond the bar, in {len(self.slow_seconds)} of {self.seconds:g} seconds; {self.failures} failed")


def echo(listener):
    """The control: answers as /health/live does, and does nothing else."""
    while True:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextlib.contextmanager
def control():
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    process = multiprocessing.Process(target=echo, args=(listener,), daemon=True)
    process.start()
    try:
        yield listener.getsockname()[1]
    finally:
        process.terminate()
        process.join()


def busy_seconds():
    """(busy, all) of all cores since the machine began."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    per_second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / per_second, sum(ticks) / per_second


class Busyness:
    """The users of the cores between begin and end."""

    def __init__(self, pids):
        self.pids = pids
        self.begin = self.now()

    def now(self):
        return [*busy_seconds(), *(cpu_seconds_of(pathlib.Path(f"/proc/{pid}/stat")) for pid in self.pids.values())]

    def line(self):
        busy, whole, *parts = (end - begin for begin, end in zip(self.begin, self.now()))
        shares = [f"{name} {part / whole:.0%}" for name, part in zip(self.pids, parts)]
        return f"cores {busy / whole:.0%} busy: {', '.join(shares)}, others {(busy - sum(parts)) / whole:.0%}"


def probe(port, control_port, options, seconds, pids, what):
    """Prints health, control and cores; the health probes."""
    usage = Busyness(pids)
    probers = [Prober(port, options.rate, seconds), Prober(control_port, options.rate, seconds)]
    for prober in probers:
        prober.start()
    for prober in probers:
        prober.join()
    print(probers[0].line(what), probers[1].line("  control"), f"  {usage.line()}", sep="\n", flush=True)
    return probers[0]


def gauges(port):
    """How the server itself sees it, if it still answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PROBE_LIMIT_S) as answer:
            text = answer.read().decode()
    except OSError as error:
        return f"no metrics: {error}"
    values = (re.search(rf"^kvasir_{name}\S* (\d+)$", text, re.MULTILINE)
              for name in ("http_connections", "requests_running"))
    return "connections {}, running {}".format(*(value[1] for value in values))


def report(result, access_log):
    lifetimes = result.pop("header_lifetimes_s")
    ends = result.pop("header_ends")
    print(f"slow headers: {result['open']} open at the end, never fewer than {result['fewest_open']}; ended {ends}, "
          f"after {percentile(lifetimes, 0):.1f} to {percentile(lifetimes, 1):.1f} s; "
          f"{result['failed_connects']} could not connect")
    print(f"stalled readers: first bytes {result['reader_answers']}, {result['failed_readers']} could not connect")
    records = [json.loads(line) for line in access_log.read_text().splitlines()]
    streams = collections.defaultdict(list)
    for record in records:
        if record["path"] == "/v1/completions":
            streams[f"{record['status']} {record.get('aborted', 'whole')}"].append(record["total_ms"] / 1e3)
    for what, seconds in sorted(streams.items()):
        print(f"  {what}: {len(seconds)}, after {min(seconds):.1f} s to {max(seconds):.1f} s")


def measure(server, options, control_port, access_log):
    pids = {"server": server.process.pid, "probes": os.getpid()}
    probe(server.port, control_port, options, options.seconds * QUIET_SHARE, pids, "/health/live, quiet")
    ours, theirs = multiprocessing.Pipe()
    attackers = multiprocessing.Process(target=attack, args=(server.port, options.headers, options.readers,
                                                             options.spread, theirs))
    attackers.start()
    try:
        if not ours.poll(120):
            raise RuntimeError("the attackers could not connect in 120 s")
        ours.recv()
        pids["attackers"] = attackers.pid
        prober = probe(server.port, control_port, options, options.seconds, pids, "/health/live, attacked")
        print(f"server: {gauges(server.port)}, peak {server.peak_bytes() / 2**20:.0f} MiB")
        ours.send("end")
        result = ours.recv()
    finally:
        attackers.join(30)
        attackers.kill()
    report(result, access_log)
    return prober


def with_descriptors(count):
    """For the server alone: the soft limit that most systems start programs with is 1024."""
    if count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", type=int, default=2000)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=50, help="probes a second")
    parser.add_argument("--spread", type=float, default=0, help="seconds within which the slow headers begin")
    parser.add_argument("--descriptors", type=int, default=0, help="the server's soft limit (default: the shell's)")
    parser.add_argument("words", nargs="*", default=["--ttft-target-ms", "0", "--max-num-seqs", "200"])
    options = parser.parse_args()
    listed = subprocess.run([BINARY, "list", "--json"], capture_output=True, text=True, check=True).stdout
    if not any(model["name"] == MODEL and model["pulled"] for model in json.loads(listed)):
        print(f"skipped: the model {MODEL} is not here (kvasir pull {MODEL})")
        return 77
    with_descriptors(options.descriptors)
    with tempfile.TemporaryDirectory(prefix="kvasir-attack-") as folder, control() as control_port:
        access_log = pathlib.Path(folder) / "access.log"
        with running([BINARY, "serve", MODEL, "--access-log", access_log, *options.words]) as server:
            prober = measure(server, options, control_port, access_log)
            if server.process.poll() is not None:
                print(f"the server ended with {server.process.returncode}")
                return 1
    p99_ms = percentile(prober.times_ms, 0.99)
    met = p99_ms <= BAR_MS and prober.failures == 0
    print(f"{'met' if met else 'MISSED'}: p99 {p99_ms:.2f} ms under attack, the bar is {BAR_MS:g} ms")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
