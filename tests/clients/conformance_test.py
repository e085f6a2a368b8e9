#!/usr/bin/env python3
"""Sends the cases of cases/*.json to a running `kvasir serve` through one client, and checks every answer.

Usage: conformance_test.py --client raw|openai|litellm|langchain|anthropic|websocket|grpc [--model NAME]
       [--only PART_OF_A_NAME] [--list]
The clients but raw come from build/clients/venv (install.sh). --list shows which cases are not sent, and why.
Exits 0 when every case holds, 1 when one does not, and 77 (skipped) without binary, model or client.
"""
import argparse
import collections
import importlib
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import case_table
import served
from answer import Refused
from checks import PLAIN_CLIENTS, check_answer, check_refusal

NUM_AT_ONCE = 4  # so that answers come out of a mixed batch
CLIENTS = {"raw": None, "openai": "openai", "litellm": "litellm", "langchain": "langchain_openai",
           "anthropic": "anthropic", "websocket": "websockets", "grpc": "grpc_reflection"}


class File:
    """The cases of one file against one server. Cases run at once, each after those that it needs."""

    def __init__(self, client_name, make_client, cases, pool):
        self.client_name, self.make_client, self.pool = client_name, make_client, pool
        self.clients, self.jobs = {}, {}
        self.cases = {case.name: case for case in cases}

    def client(self, key):
        if key not in self.clients:
            self.clients[key] = self.make_client(key)
        return self.clients[key]

    def why_not(self, case):
        """Why a case is not sent through this client, or None."""
        reason = case.cannot.get(self.client_name)
        if reason is None and self.client_name not in PLAIN_CLIENTS:
            reason = case.cannot.get("clients")
        return reason or self.client(case.key).cannot(case)

    def answer_of(self, name):
        return self.jobs[name].result()

    def send(self, case):
        if case.after:
            self.jobs[case.after].exception()
        request = case_table.resolved(case.request, self.answer_of)
        return self.client(case.key).ask(case.endpoint, request, case.streamed)

    def start(self):
        """name -> reason, of the cases that are left out."""
        left_out = {}
        for case in self.cases.values():
            needs = (f"needs {name!r}" for name in case.needs() if name in left_out)
            reason = self.why_not(case) or next(needs, None)
            if reason:
                left_out[case.name] = reason
            else:
                self.jobs[case.name] = self.pool.submit(self.send, case)
        return left_out

    def check(self, name):
        """The fault of the answer to a case, or None."""
        case, blind = self.cases[name], self.client(self.cases[name].key).blind
        try:
            try:
                answer = self.jobs[name].result()
            except Refused as error:
                check_refusal(case, self.client_name, blind, error)
            else:
                check_answer(case, blind, answer, self.answer_of)
        except Exception as error:  # of any client: a case has failed, and the others go on
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {str(error)[:600]} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
        return None


def key_of(name, keys):
    """The API key that a case's `key` means: no key, an unknown one, or one that the server was started with."""
    if name is None or name == "":
        return None
    return f"sk-{name}" if name.startswith("?") else keys[name]


def run_file(arguments, module, setup, cases, counts):
    """Prints what fails and counts it, and returns case -> why it was not sent."""
    options = getattr(module, "SERVER_OPTIONS", ())
    with served.serving(arguments.model, setup, options) as server, ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        file = File(arguments.client, lambda key: module.Client(server, arguments.model, key_of(key, server.keys)),
                    cases, pool)
        left_out = file.start()
        for name in file.jobs:
            wrong = file.check(name)
            counts["failed" if wrong else "passed"] += 1
            if wrong:
                print(f"FAILED {name}: {wrong}")
    counts["not_sent"] += len(left_out)
    return left_out


def only(files, part):
    """The cases with `part` in their names, and those that they need."""
    for name, setup, cases in files:
        wanted = set()
        for case in reversed(cases):
            if part in case.name or case.name in wanted:
                wanted |= {case.name, *case.needs()}
        chosen = [case for case in cases if case.name in wanted]
        if chosen:
            yield name, setup, chosen


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--client", choices=CLIENTS, required=True)
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--list", action="store_true", help="also show what is not sent, and why")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    files = list(only(case_table.read_all(arguments.model), arguments.only))
    served.need_model(arguments.model)
    if CLIENTS[arguments.client]:
        served.run_in_venv([CLIENTS[arguments.client]])
    module = importlib.import_module(f"{arguments.client}_client")
    counts, reasons = collections.Counter(), collections.Counter()
    for name, setup, cases in files:
        print(f"{arguments.client}: {name}, {len(cases)} cases", file=sys.stderr)
        left_out = run_file(arguments, module, setup, cases, counts)
        reasons.update(left_out.values())
        for case, why in left_out.items() if arguments.list else ():
            print(f"not sent: {case}: {why}")
    for why, number in reasons.most_common():
        print(f"not sent through {arguments.client}: {number} ({why})")
    print(f"{arguments.client}: {counts['passed']} passed, {counts['failed']} failed, {counts['not_sent']} not sent")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
