"""Every case of adversarial/*.json against the real server: the exact answer, and that no other client noticed.

    adversarial_test.py [--groups GROUP,...] [--without GROUP,...] [--only TEXT] [--list]

A case has the form of tests/server/cases (raw, or method, path, headers, body, raw_body; expect: status, json,
headers, contains) and here also:
  bytes         beside strings and {"repeat", "times"}: {"hex": "ff"}, and {"numbered": "#,", "times"} with 0, 1,
                2, ... in place of #
  request       slow: steps that are bytes, {"drip": bytes, "times", "every_ms"} or {"pause_ms"}; an
                endless drip is one that the server has to end;
                half_closes; from: a source address; hold_connections, over_addresses: idle ones at that time;
                never_reads: until the access log has the request
  expect        status: of each answer where requests are pipelined, answers: how many have that status;
                closed: true for no answer; param, code: of an error, always; lacks: texts;
                aborted: the access log's cause
After the last answer a connection that is kept must answer one more request, and one that is not must end there.
After each case the canary must say what it said at first. The slow cases run side by side.

Exit codes: 0 as wanted, 1 not, 2 wrong usage, 77 skipped (no model).
"""
import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import resource
import sys
import time

from http_wire import BadAnswer, Wire, answer_problems, request_bytes, strict_json
from live_server import live_server

CASES = pathlib.Path(__file__).with_name("adversarial")
MIN_CASES = 100
LIVE = request_bytes("GET", "/health/live")
LOG_LIMIT_S = 300
NO_SUCH_MEMBER = object()


def to_bytes(parts):
    """The bytes of a text, or of an array as the head of this file describes it."""
    pieces = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, str):
            pieces.append(part.encode())
        elif "hex" in part:
            pieces.append(bytes.fromhex(part["hex"]))
        elif "numbered" in part:
            pieces += [part["numbered"].replace("#", str(i)).encode() for i in range(part["times"])]
        else:
            pieces.append(to_bytes(part["repeat"]) * part["times"])
    return b"".join(pieces)


def bytes_of(request):
    if "raw" in request:
        return to_bytes(request["raw"])
    body = to_bytes(request.get("raw_body", []))
    if "body" in request:
        body = json.dumps(request["body"], ensure_ascii=False).encode()
    method = request.get("method", "POST" if body else "GET")
    return request_bytes(method, request.get("path", "/v1/chat/completions"), body, request.get("headers", []))


def send_slowly(wire, steps):
    """True when the server took all of a drip that it ought to end."""
    for step in steps:
        if isinstance(step, dict) and "drip" in step:
            for _ in range(step["times"]):
                # An answer to what is not over yet ends the dripping.
                if wire.is_readable(step["every_ms"] / 1000) or not wire.send(to_bytes(step["drip"])):
                    return False
            if step.get("endless"):
                return True
        elif isinstance(step, dict) and "pause_ms" in step:
            time.sleep(step["pause_ms"] / 1000)
        elif not wire.send(to_bytes([step])):
            return False
    return False


@contextlib.contextmanager
def idle_connections(port, count, addresses):
    """`count` connections that say nothing, spread over that many addresses of this machine."""
    with contextlib.ExitStack() as held:
        for i in range(count):
            source = f"127.0.0.{2 + i % addresses}" if addresses > 1 else "127.0.0.1"
            held.enter_context(Wire(port, source=source))
        yield


def statuses_of(expect):
    if "closed" in expect or "aborted" in expect:
        return []
    return expect["status"] if isinstance(expect["status"], list) else [expect["status"]] * expect.get("answers", 1)


def receive_all(wire, count, is_head):
    answers = []
    while len(answers) < count and (answer := wire.receive(is_head)):
        answers.append(answer)
    return answers


def member(document, pointer):
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(name)] if isinstance(document, list) else document[name]
        except (KeyError, IndexError, ValueError, TypeError):
            return NO_SUCH_MEMBER
    return document


def content_problems(answer, expect):
    """The faults of the last answer's content."""
    problems = []
    text = answer.body.decode("utf-8", "replace")
    wanted = dict(expect.get("json", {}))
    if answer.status >= 400 and "no_error_body" not in expect:
        wanted |= {"/error/param": expect["param"], "/error/code": expect["code"]}
    document = strict_json(answer.body) if wanted else None
    for pointer, value in wanted.items():
        if (found := member(document, pointer)) != value:
            problems.append(f"{pointer} is {'absent' if found is NO_SUCH_MEMBER else found!r}, not {value!r}")
    for name, value in expect.get("headers", {}).items():
        if answer.header(name) != value:
            problems.append(f"header {name} is {answer.header(name)!r}, not {value!r}")
    problems += [f"no {part!r} in the answer" for part in expect.get("contains", []) if part not in text]
    whole = text + "".join(f"{name}: {value}\n" for name, value in answer.headers)
    problems += [f"{part!r} in the answer" for part in expect.get("lacks", []) if part in whole]
    return problems + ([f"answer: {text[:300]}"] if problems else [])


def framing_problems(wire, answers, expect, half_closed):
    """The rest behind the last answer: nothing, and then either the end or the answer to one more request."""
    if answers and answers[-1].keeps_alive and not half_closed:
        wire.send(LIVE)
        behind = wire.receive()
        return [] if behind and behind.status == 200 else [f"the connection was kept, but then {behind}"]
    if wire.receive() is not None:
        return ["more answers than requests"]
    if expect.get("code") == "bad_http" and answers and answers[-1].keeps_alive:
        return ["a framing error that keeps the connection"]
    return []


def exchange_problems(wire, request, expect):
    is_head = request.get("method") == "HEAD"
    if "slow" in request and send_slowly(wire, request["slow"]):
        return ["the server took it all and did not end the connection"]
    if "slow" not in request:
        wire.send(bytes_of(request))
    if request.get("half_closes"):
        wire.end_sending()
    wanted = statuses_of(expect)
    answers = receive_all(wire, len(wanted), is_head)
    statuses = [answer.status for answer in answers]
    problems = [problem for answer in answers for problem in answer_problems(answer, is_head)]
    if statuses != wanted:
        shown = answers[-1].body[:300] if answers else b""
        return [*problems, f"status {statuses}, not {wanted}: {shown!r}"]
    if answers and not problems:
        problems += content_problems(answers[-1], expect)
    return problems + framing_problems(wire, answers, expect, request.get("half_closes"))


def abort_problems(server, wire, name, request, expect):
    """The answer to a reader that takes nothing until the log says that the server gave up; it must be cut."""
    client_id = "case-" + name.replace(" ", "-")
    head, rest = bytes_of(request).split(b"\r\n", 1)
    wire.send(head + f"\r\nX-Client-Request-Id: {client_id}\r\n".encode() + rest)
    deadline = time.monotonic() + LOG_LIMIT_S
    while (record := server.log_record(client_id)) is None:
        if time.monotonic() > deadline:
            return [f"after {LOG_LIMIT_S} s the server still waits for its reader"]
        time.sleep(0.5)
    if record.get("aborted") != expect["aborted"]:
        return [f"the log has {record}"]
    try:
        while wire.receive():
            pass
    except BadAnswer:
        return []
    return ["an answer that was given up looks complete"]


def case_problems(server, case):
    request, expect = case["request"], case["expect"]
    held = idle_connections(server.port, request.get("hold_connections", 0), request.get("over_addresses", 1))
    try:
        with held, Wire(server.port, request.get("from", ""), request.get("never_reads", False)) as wire:
            if "aborted" in expect:
                problems = abort_problems(server, wire, case["name"], request, expect)
            else:
                problems = exchange_problems(wire, request, expect)
    except (BadAnswer, OSError, ValueError) as error:
        problems = [repr(error)]
    return problems + server.canary_problems()


def table_problems(groups):
    """A case that checks less than it seems to is a defect of the table."""
    problems, names = [], set()
    for case in (case for cases in groups.values() for case in cases):
        expect = case["expect"]
        if case["name"] in names:
            problems.append(f"{case['name']}: the name is taken")
        names.add(case["name"])
        is_error = max(statuses_of(expect)[-1:], default=0) >= 400 and "no_error_body" not in expect
        if is_error != ("param" in expect and "code" in expect):
            problems.append(f"{case['name']}: an error has param and code, anything else has not")
    if len(names) < MIN_CASES:
        problems.append(f"{len(names)} cases, at least {MIN_CASES} are wanted")
    return problems


def run(server, cases, at_once):
    """Prints each case that is not as wanted; how many."""
    num_bad = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = pool.map(lambda case: case_problems(server, case), cases)
        for i, (case, problems) in enumerate(zip(cases, results), 1):
            num_bad += bool(problems)
            if problems:
                print(f"FAILED {case['name']}: " + "; ".join(problems), flush=True)
            print(f"\r{i}/{len(cases)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return num_bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=lambda text: text.split(","), help="these alone")
    parser.add_argument("--without", type=lambda text: text.split(","), default=[])
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    files = [json.loads(file.read_text()) for file in sorted(CASES.glob("*.json"))]
    groups = {name: cases for file in files for name, cases in file.items()}
    if problems := table_problems(groups):
        print(*problems, sep="\n")
        return 1
    chosen = {name: [case for case in cases if options.only in case["name"]] for name, cases in groups.items()
              if name in (options.groups or groups) and name not in options.without}
    if options.list:
        print(*(f"{name}: {case['name']}" for name, cases in chosen.items() for case in cases), sep="\n")
        return 0
    if not any(chosen.values()):
        parser.error("no such case")
    num_bad = 0
    # No request is refused for the time that an answer would take, so that no case depends on the machine's.
    with live_server("--max-connections-per-address", "256") as server:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # ours; the server has started with the usual one
        for name, cases in chosen.items():
            at_once = len(cases) if name == "slow clients" else 1
            bad = run(server, cases, max(at_once, 1))
            print(f"{name}: {len(cases) - bad} of {len(cases)} as wanted", flush=True)
            num_bad += bad
        print(f"canary: {server.first_text!r}, {server.num_delays} delays")
    return 1 if num_bad else 0


if __name__ == "__main__":
    sys.exit(main())
