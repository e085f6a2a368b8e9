#!/usr/bin/env python3
"""Plays prompts one at a time against a server that guesses tokens and one that does not, in turn.

Both give the same texts; a difference is an error. With --draft-rule residual they have the same distribution alone: then
requests have no seed, and texts are not compared. Rates count from the first token to the last. Each round has answers
of its own to look up (cache_salt), unless --again: then a round is played before that does not count.

Usage: compare.py MODEL --workload FILE [--kinds LIST] [--speculate NAME] [--draft-model MODEL] [--draft-rule RULE] [--again] [--rounds N]
         [--streams N] [--waves N] [--max-tokens N] [--temperature T] [--out FILE]
  FILE: JSON lines {"kind", "prompt" or "messages", "response_format"}; the last is optional
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))


class Server:
    def __init__(self, model, speculate, streams, *words):
        self.process = subprocess.Popen([KVASIR, "serve", model, "--port", "0", "--speculate", speculate,
                                         "--max-num-seqs", str(max(streams, 2)), "--no-prefix-cache", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in self.process.stdout:
            found = re.search(rb"http://[^ :]+:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise SystemExit("the server did not start")

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def drafts(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        found = re.findall(r'kvasir_(draft_tokens\w*)_total\{.*drafter="(\w+)"\} (\d+)', text)
        return {f"{name} of {drafter}": int(number) for name, drafter, number in found}

    def estimates(self):
        """Tokens and time of steps with guesses: what was expected, and what came."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        found = dict(re.findall(r"kvasir_draft_step_?(\w*?)_total\{.*?\} (\S+)", text))
        steps = float(re.search(r"kvasir_draft_steps_total\{.*?\} (\S+)", text)[1])
        if steps == 0:
            return None
        return {"steps": int(steps), "tokens_per_step": round(float(found["tokens"]) / steps, 3),
                "tokens_per_step_expected": round(float(found["tokens_expected"]) / steps, 3),
                "time_over_expected": round(float(found["seconds"]) / float(found["seconds_expected"]), 3)}

    def answer(self, job, salt, max_tokens, temperature, seed):
        """The text, its tokens, and the seconds from the first token to the last."""
        body = {"cache_salt": salt, "max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stream": True,
                "stream_options": {"include_usage": True}}
        path = "/v1/chat/completions" if "messages" in job else "/v1/completions"
        body |= {key: job[key] for key in ("messages", "prompt", "response_format", "ignore_eos") if key in job}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        text, first, last, tokens = "", None, None, 0
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
            for choice in event["choices"]:
                piece = choice["text"] if "text" in choice else choice["delta"].get("content") or ""
                last = time.monotonic()
                first = first or last
                text += piece
        connection.close()
        return text, tokens, (last or 0) - (first or 0)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def play(server, asked, salt, arguments):
    """Answers to all that is asked, so often that all streams have work; wall and processor seconds."""
    num_asked = len(asked)
    jobs = asked * -(-arguments.streams * arguments.waves // num_asked)
    seed = -1 if arguments.draft_rule == "residual" else 7
    began, cpu = time.monotonic(), server.cpu_s()
    with concurrent.futures.ThreadPoolExecutor(arguments.streams) as pool:
        answers = list(pool.map(lambda job: server.answer(job[1], f"{salt}, {job[0] // num_asked}", arguments.max_tokens,
                                                          arguments.temperature, seed), enumerate(jobs)))
    return answers, time.monotonic() - began, server.cpu_s() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--workload", required=True)
    parser.add_argument("--kinds", help="of the workload, with commas; all")
    parser.add_argument("--speculate", default="auto", help="off: the spread of a server against itself")
    parser.add_argument("--draft-model", help="of the server that guesses")
    parser.add_argument("--draft-rule", default="match", help="of that server")
    parser.add_argument("--again", action="store_true", help="every question was asked before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--waves", type=int, default=1, help="answers of a stream, at least: at the end of a round streams are few")
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    jobs = [json.loads(line) for line in open(arguments.workload)]
    kinds = arguments.kinds.split(",") if arguments.kinds else sorted({job["kind"] for job in jobs})
    draft = ["--draft-model", arguments.draft_model, "--draft-rule", arguments.draft_rule] if arguments.draft_model else []
    servers = {"off": Server(arguments.model, "off", arguments.streams),
               "on": Server(arguments.model, arguments.speculate, arguments.streams, *draft)}
    rows, wrong, guessed_tokens = [], 0, 0
    try:
        for turn in range(arguments.rounds):
            for kind in kinds:
                of_kind = [job for job in jobs if job["kind"] == kind]
                names = list(servers) if turn % 2 == 0 else list(servers)[::-1]
                salt = "again" if arguments.again else f"round {turn}"
                if arguments.again and turn == 0:
                    play(servers["on"], of_kind, salt, arguments)
                played = {name: play(servers[name], of_kind, salt, arguments) for name in names}
                if arguments.draft_rule != "residual":
                    wrong += sum(a[0] != b[0] for a, b in zip(played["off"][0], played["on"][0]))
                count = {name: sum(answer[1] for answer in played[name][0]) for name in servers}
                tokens = count["off"]
                guessed_tokens += count["on"]
                # Texts that differ have other lengths: seconds of a token.
                decode = {name: sum(answer[2] for answer in played[name][0]) / count[name] for name in servers}
                rows.append({"kind": kind, "turn": turn, "tokens": tokens, "decode_ratio": decode["off"] / decode["on"],
                             "wall_ratio": played["off"][1] / played["on"][1] * count["on"] / count["off"],
                             "cpu_ratio": played["off"][2] / played["on"][2] * count["on"] / count["off"]})
                print({key: round(value, 3) if isinstance(value, float) else value for key, value in rows[-1].items()},
                      flush=True)
        drafts, estimates = servers["on"].drafts(), servers["on"].estimates()
    finally:
        for server in servers.values():
            server.stop()
    summary = {kind: {key: round(statistics.median(row[key] for row in rows if row["kind"] == kind), 3)
                      for key in ("decode_ratio", "wall_ratio", "cpu_ratio")} for kind in kinds}
    # A round before the first one of --again is not in the tokens.
    accepted = sum(number for name, number in drafts.items() if name.startswith("draft_tokens_accepted"))
    tokens_per_step = None if arguments.again else round(guessed_tokens / (guessed_tokens - accepted), 3)
    print(json.dumps({"median": summary, "draft_tokens": drafts, "tokens_per_step": tokens_per_step, "estimates": estimates,
                      "texts_that_differ": wrong}))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": arguments.model, "streams": arguments.streams,
                                                           "waves": arguments.waves,
                                                           "speculate": arguments.speculate, "draft_model": arguments.draft_model, "draft_rule": arguments.draft_rule,
                                                           "again": arguments.again,
                                                           "temperature": arguments.temperature, "median": summary,
                                                           "draft_tokens": drafts, "tokens_per_step": tokens_per_step,
                                                           "estimates": estimates, "rows": rows}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
