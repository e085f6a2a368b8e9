#!/usr/bin/env python3
"""What shadows cost and catch: shadows.py MODEL --file TEXT --what exact|load|faults [--out FILE]

exact    answers without a KV policy, all scored again: they must diverge by exactly 0.0
load     processor time of the server per request, without and with every answer scored, in turn; a share of P takes P of the
         difference
faults   ladder-learned as it is, then with a fault: heads' weights in another order, the forecast negated, a budget of 5%.
         How many shadows until the policy is held back, and how far it diverges. With --faults only those named, so that a build
         with a fault of its own can be measured as "sound".
"""
import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import statistics
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "load"))
import servers  # noqa: E402


@contextlib.contextmanager
def served(args, model, share, *flags):
    """A server with shadows, for a while."""
    with servers.running([pathlib.Path(args.binary), "serve", model, "--kv-shadow", share, "--max-model-len", 8192, *flags]) as process:
        yield Served(args, process)


class Served:
    def __init__(self, args, process):
        self.args, self.process = args, process

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.process.port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def complete(self, count, first=0, **body):
        """Answers of a number of prompts from the text, eight at a time."""
        text, size = self.args.text, self.args.prompt_bytes

        def one(i):
            at = (first + i) * size % (len(text) - size)
            return self.call("/v1/completions", {"prompt": f"{first + i} " + text[at:at + size], "max_tokens": self.args.answer_tokens,
                                                 "temperature": 0.8, "seed": first + i, "ignore_eos": True, **body})
        with concurrent.futures.ThreadPoolExecutor(self.args.clients) as pool:
            return list(pool.map(one, range(count)))

    def row(self, policy, count):
        """What shadows say, once so many answers of the policy are through."""
        while True:
            for row in self.call("/v1/kv_policies"):
                if row["policy"] == policy and (row["scored"] + row["unknown"] + row["downgraded"] >= count or row["state"] != "serving"):
                    return row
            time.sleep(0.2)


def exact(args):
    with served(args, args.model, 1) as server:
        done = 0
        while done < args.requests:  # no more at once than may wait to be scored
            done += len(server.complete(min(40, args.requests - done), done))
            row = server.row("none", done)
    return [{"what": "exact", **row}]


def load(args):
    seconds = {0: [], 1: []}
    for i in range(2 * args.rounds):
        share = (i + i // 2) % 2  # A B B A
        with served(args, args.model, share, "--no-prefix-cache") as server:
            server.complete(8)
            if share:
                server.row("none", 8)
            before = server.process.cpu_seconds()
            server.complete(32, 100)
            if share:
                server.row("none", 40)
            seconds[share].append((server.process.cpu_seconds() - before) / 32)
    without, with_all = (statistics.median(seconds[share]) for share in (0, 1))
    return [{"what": "load", "cpu_s_per_request": seconds, "of_all_scored": with_all / without - 1, "of_one_in_a_hundred": (with_all / without - 1) / 100}]


def with_fault(calibration, fault):
    changed = json.loads(json.dumps(calibration))
    if fault == "heads":
        changed["kv_head_weights"].reverse()
    if fault == "negated":
        changed["kv_forecast"]["output_weights"] = [-x for x in changed["kv_forecast"]["output_weights"]]
    return changed


def faults(args):
    calibration = json.loads(pathlib.Path(args.model + ".kv.json").read_text())
    rows = []
    for fault in args.faults:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / pathlib.Path(args.model).name
            model.symlink_to(pathlib.Path(args.model).resolve())
            model.with_name(model.name + ".kv.json").write_text(json.dumps(with_fault(calibration, fault)))
            budget, quality = (0.05, "best_effort") if fault == "budget" else (args.budget, "gate")
            with served(args, str(model), 1, "--kv-shadow-kl", args.kl) as server:
                done, state = 0, "serving"
                while done < args.requests and state == "serving":
                    done += len(server.complete(20, done, kv_policy="ladder-learned", kv_budget=budget, kv_quality=quality))
                    row = server.row("ladder-learned", done)
                    state = row["state"]
        rows.append({"what": "faults", "fault": fault, "budget": budget, **row})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--what", choices=["exact", "load", "faults"], required=True)
    parser.add_argument("--binary", default="build/release/bin/kvasir")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--prompt-bytes", type=int, default=4000)
    parser.add_argument("--answer-tokens", type=int, default=64)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.25)
    parser.add_argument("--kl", type=float, default=0.004)
    parser.add_argument("--faults", nargs="+", default=["sound", "heads", "negated", "budget"])
    parser.add_argument("--out")
    args = parser.parse_args()
    args.text = pathlib.Path(args.file).read_text()
    rows = {"exact": exact, "load": load, "faults": faults}[args.what](args)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    print(text, end="")
    if args.out:
        pathlib.Path(args.out).write_text(text)


main()
