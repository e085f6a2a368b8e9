"""Mutated requests against the real server: it answers each or closes, and answers the next as if nothing was.

    mutation_test.py [--count N] [--seed S] [--only I]

Wanted of each of the N requests (request I depends on S and I alone): the server lives; every answer is whole and
has the form of an answer, a stream or an error; no 5xx but a 503 with Retry-After; what is a whole HTTP request is
answered; then a canary says what it said at first. A request that keeps the server busy is left after
PATIENCE_S by hanging up. At the end nothing runs or waits any more.

Exit codes: 0 as wanted, 1 not, 2 wrong usage, 77 skipped (no model).
"""
import argparse
import collections
import random
import re
import socket
import struct
import sys
import time

from http_wire import BadAnswer, Wire, answer_problems, request_bytes
from live_server import live_server
from mutations import mutated

PATIENCE_S = 2
MAX_FAILURES = 20
CALM_LIMIT_S = 60
STATUSES = {200, 400, 403, 404, 405, 413, 414, 417, 431, 503}
REQUEST_LINE = re.compile(rb"(POST|GET) /[!-~]* HTTP/1\.1")
HEADER_LINE = re.compile(rb"([A-Za-z-]+): ([ -~]*)")


def must_be_answered(data):
    """Whether the bytes begin with a request that is whole beyond doubt."""
    head, end, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = [HEADER_LINE.fullmatch(line) for line in lines]
    if not end or not REQUEST_LINE.fullmatch(first) or not all(headers):
        return False
    names = [header[1].lower() for header in headers]
    lengths = [header[2] for header in headers if header[1].lower() == b"content-length"]
    if b"transfer-encoding" in names or len(lengths) > 1:
        return False
    return not lengths or (lengths[0].isdigit() and int(lengths[0]) <= len(body))


def hang_up(wire, rng):
    """Half the time as a client does that crashed."""
    if rng.random() < 0.5:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def exchange(port, rng, data, is_framed):
    """(statuses and words for the summary, problems)"""
    seen, problems = [], []
    with Wire(port, limit_s=PATIENCE_S) as wire:
        try:
            wire.send(data)
            if not is_framed:
                wire.end_sending()
            while answer := wire.receive():
                seen.append(answer.status)
                problems += answer_problems(answer)
                if answer.status not in STATUSES:
                    problems.append(f"unexplained status {answer.status}: {answer.body[:300]!r}")
                if is_framed:
                    break
        except TimeoutError:
            hang_up(wire, rng)
            seen.append("left")
        except (BadAnswer, ValueError) as error:
            problems.append(repr(error))
    if not seen and not problems:
        seen.append("closed")
        if is_framed or must_be_answered(data):
            problems.append("a whole request without an answer")
    return seen, problems


def is_calm(server):
    """Nothing runs or waits, perhaps after a moment."""
    deadline = time.monotonic() + CALM_LIMIT_S
    while time.monotonic() < deadline:
        with Wire(server.port) as wire:
            wire.send(request_bytes("GET", "/metrics"))
            text = wire.receive().body.decode()
        counts = re.findall(r"^kvasir_requests_(?:running|waiting)\S* (\d+)$", text, re.MULTILINE)
        if counts == ["0", "0"]:
            return True
        time.sleep(0.2)
    return False


def attack(server, seed, indices):
    """(how many of each outcome, how many failures); ends early when the server did or after MAX_FAILURES."""
    outcomes, num_failures, began = collections.Counter(), 0, time.monotonic()
    for done, i in enumerate(indices, 1):
        rng = random.Random(f"{seed}:{i}")
        kind, data, is_framed = mutated(rng)
        try:
            seen, problems = exchange(server.port, rng, data, is_framed)
        except OSError as error:
            seen, problems = ["no connection"], [repr(error)]
        outcomes.update(seen)
        problems += server.canary_problems()
        if problems:
            num_failures += 1
            print(f"FAILED --seed {seed} --only {i} ({kind}): {'; '.join(problems)}\n  {data[:700]!r}", flush=True)
        if server.exit_code() is not None or num_failures >= MAX_FAILURES:
            break
        if done % 50 == 0:
            rate = done / (time.monotonic() - began)
            print(f"\r{done}/{len(indices)} {rate:.0f}/s ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return outcomes, num_failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this request alone")
    options = parser.parse_args()
    indices = range(options.count) if options.only is None else [options.only]
    with live_server(canary_tokens=2) as server:
        resident_bytes = server.resident_bytes()
        began = time.monotonic()
        outcomes, num_failures = attack(server, options.seed, indices)
        if server.exit_code() is None and not is_calm(server):
            num_failures += 1
            print(f"FAILED: {CALM_LIMIT_S} s after the last request something still runs or waits")
        if server.exit_code() is None:
            grown_mib = (server.resident_bytes() - resident_bytes) / 2**20
            print(f"{len(indices)} requests in {time.monotonic() - began:.0f} s, "
                  f"seed {options.seed}: {dict(sorted(outcomes.items(), key=str))}; {num_failures} failures; "
                  f"canary {server.first_text!r}, {server.num_delays} delays; {grown_mib:+.1f} MiB resident")
    return 1 if num_failures else 0


if __name__ == "__main__":
    sys.exit(main())
