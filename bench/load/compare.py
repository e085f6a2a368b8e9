#!/usr/bin/env python3
"""Servers under the same load, in turn on this machine: compare.py MODEL --file TEXT [--out FILE]

  --workload users     16 users, prompts of 300 tokens, answers of 100
  --workload prefix    the same behind 1,000 tokens that all share
  --workload TRACE.gz  arrivals of Azure's or Mooncake's public trace, at each of --rates requests per second

Client and server share the machine's cores; the client's share of the processor time is in the report. Every run
starts its server anew and has prompts of its own; a server's first request, which no report has, warms it up.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import outcomes
import servers
import workloads


def asked(*words):
    """kvasir's output, as JSON."""
    servers.require(servers.KVASIR)
    return json.loads(subprocess.run([servers.KVASIR, *words, "--json"], check=True, capture_output=True,
                                     text=True).stdout)


def play(server, model, requests, users, retries=0):
    """kvasir_load's outcomes and report, and the seconds of processor time that the server used."""
    servers.require(servers.CLIENT)
    with tempfile.TemporaryDirectory() as folder:
        plan, came = pathlib.Path(folder, "plan"), pathlib.Path(folder, "came")
        with open(plan, "w") as file:
            for request in requests:
                file.write(json.dumps(request, separators=(",", ":")) + "\n")
        command = [servers.CLIENT, "--port", server.port, "--model", model, "--workload", plan, "--out", came,
                   "--users", users, "--retries", retries]
        cpu = server.cpu_seconds()
        report = json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True,
                                           text=True).stdout)
        return outcomes.read(came), report, server.cpu_seconds() - cpu


def warm_up(server, model, text, seed, api_key=""):
    request = workloads.users(text, (seed, "warm up"), 1, 64, 8)[0]
    play(server, model, [{**request, "api_key": api_key}], 1)


def measure(command, model, text, seed, requests, users, retries=0):
    with servers.running(command) as server:
        warm_up(server, model, text, seed)
        came, report, server_cpu_seconds = play(server, model, requests, users, retries)
        summary = outcomes.summary(came, report["seconds"], report["client_cpu_seconds"], server_cpu_seconds)
        return {**summary, "peak_bytes": server.peak_bytes()}


def rows_of_trace(args, text, seed):
    if "mooncake" in args.workload:
        return workloads.mooncake(args.workload, seed, args.context)
    return workloads.azure(args.workload, text, seed, args.context)


def path_of(model):
    return asked("show", model)[0]["path"]


def chosen_servers(args):
    """Those of --servers, or all, each with the words that start it."""
    commands = servers.commands(args.model, path_of(args.model))
    names = args.servers.split(";") if args.servers else list(commands)
    if unknown := [name for name in names if name not in commands]:
        sys.exit(f"no server is called {unknown[0]}; there are {'; '.join(commands)}")
    return {name: commands[name] for name in names}


def text_of(args):
    return workloads.Text(asked("tokenize", args.model, "--file", args.file)["ids"])


def plans(args, text, seed):
    """(name, requests, users) of each load of one round."""
    if args.workload == "users":
        yield f"{args.users} users", workloads.users(text, seed, args.requests), args.users
    elif args.workload == "prefix":
        yield f"{args.users} users, shared prefix", workloads.users(text, seed, args.requests, 100, 100, 1000), args.users
    else:
        rows = rows_of_trace(args, text, seed)
        for rate in args.rates:
            timed = workloads.at_rate(rows, rate, args.seconds)
            yield f"{rate:g} requests/s", list(workloads.written_out(timed, text)), 0


def line_of(name, load, came):
    ms = {f"{kind} {point}": came[kind][point] for kind, point in
          (("ttft_ms", "mean"), ("ttft_ms", "p99"), ("gap_ms", "p50"), ("gap_ms", "p99"))}
    times = ", ".join(f"{key} {value:.0f}" if value is not None else f"{key} -" for key, value in ms.items())
    return (f"{load}, {name}: {came['tokens_per_s']:.1f} tokens/s, {times}, {came['in_slo']} of {came['requests']} in "
            f"the SLO, {came['refused']} refused, {came['retries']} retries, client {came['client_cpu_share']:.1%} of the processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--file", required=True, help="text that prompts are pieces of")
    parser.add_argument("--workload", default="users")
    parser.add_argument("--servers", help="names, with semicolons between them (default: all)")
    parser.add_argument("--users", type=int, default=16)
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--retries", type=int, default=2,
                        help="of a refused request, each after its Retry-After; OpenAI's SDKs have 2")
    parser.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[0.5, 1, 2])
    parser.add_argument("--seconds", type=float, default=60, help="of a trace")
    parser.add_argument("--context", type=int, default=servers.CONTEXT)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    commands = chosen_servers(args)
    text = text_of(args)
    rows = []
    for turn in range(args.rounds):
        for name in list(commands) if turn % 2 == 0 else list(commands)[::-1]:
            for load, requests, users in plans(args, text, (turn, name)):
                came = measure(commands[name], args.model, text, (turn, name), requests, users, args.retries)
                rows.append({"server": name, "load": load, "turn": turn, **came})
                print(line_of(name, load, came), file=sys.stderr, flush=True)
                if args.out:
                    pathlib.Path(args.out).write_text(json.dumps({"model": args.model, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
