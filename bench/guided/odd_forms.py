#!/usr/bin/env python3
"""Answers to schemas of texts whose counted repeats may begin anywhere, near a bound of length.

    odd_forms.py MODEL [--answers 6] [--drawn 40] [--seed 5] [--streams 8] [--out FILE]

Eleven forms are written down and --drawn more are drawn: one to three counted patterns, some excluded, some in a oneOf.
Answers have temperature 1. Counted are those that end, those that are cut, and refusals by status; `late` are
refusals in the middle of an answer. Every answer that ends is checked by the package
`jsonschema`. Also shown is the bound of the longest steps, by the server's histogram.
Exit code 1: an answer that ended is not valid.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import urllib.error
import urllib.request

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))

WRITTEN = [(".*x.{12}y", None, 40), ("^.*x.{15}y$", None, 60), ("[aeiou].{15}[aeiou]$", None, 300),
           ("^.*[aeiou].{20}n$", 5, 80), ("^.*x.{20}y$", 10, 100), ("[a-m].{10}[n-z].{10}q$", None, 60),
           ("(ab|cd).{14}z$", 3, 50), ("^(?!.*(ab|cd)).*x.{12}y$", None, 40), ("^(?=.*x.{8}y).*a.{9}b$", None, 60)]
ATOMS = ["x", "[aeiou]", "[a-m]", "(ab|cd)", "\\d", "[^ ]", "the", "(a|b|c)", "\\w", "[A-Z]"]
REPEATS = [".{%d}", "[a-z ]{%d}", "(.|\\n){%d}", ".{3,%d}"]


def text(pattern, least=None, most=None):
    schema = {"type": "string", "pattern": pattern}
    return schema | ({"minLength": least} if least else {}) | ({"maxLength": most} if most else {})


def written_forms():
    forms = [text(*one) for one in WRITTEN]
    forms.append({"oneOf": [text("x.{12}y", most=40), text("z.{9}[aeiou]", most=50)]})
    forms.append({"type": "string", "allOf": [{"pattern": "x.{12}y"}, {"pattern": "z.{9}[aeiou]"}], "maxLength": 60})
    return forms


def drawn_form(draw):
    def pattern():
        repeat = draw.choice(REPEATS) % draw.randint(5, 18)
        return draw.choice(["", "^.*"]) + draw.choice(ATOMS) + repeat + draw.choice(ATOMS) + draw.choice(["", "$"])

    schema = {"type": "string", "maxLength": draw.randint(25, 90)}
    kind = draw.random()
    if kind < 0.25:
        schema["allOf"] = [{"pattern": pattern()}, {"pattern": pattern()}]
    elif kind < 0.4:
        schema["allOf"] = [{"pattern": pattern()}, {"not": {"pattern": pattern()}}]
    elif kind < 0.5:
        schema["allOf"] = [{"pattern": pattern()} for _ in range(3)]
    elif kind < 0.65:
        return {"oneOf": [text(pattern(), most=50), text(pattern(), most=60)]}
    elif kind < 0.75:
        schema["not"] = {"pattern": pattern()}
    else:
        schema["pattern"] = pattern()
    if draw.random() < 0.4:
        schema["minLength"] = draw.randint(1, 20)
    return schema


def ask(url, schema, seed):
    """How the answer ended, and its text."""
    body = {"messages": [{"role": "user", "content": "Write a long odd text."}], "temperature": 1, "seed": seed, "max_tokens": 120,
            "guided_json": schema}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        choice = json.load(urllib.request.urlopen(request, timeout=600))["choices"][0]
        return choice["finish_reason"], choice["message"]["content"]
    except urllib.error.HTTPError as error:
        return str(error.code), json.load(error)["error"]["message"]


def longest_step(url):
    metrics = urllib.request.urlopen(url + "/metrics").read().decode()
    buckets = re.findall(r'kvasir_step_seconds_bucket\{[^}]*le="([^"]+)"\} (\d+)', metrics)
    return next(bound for bound, count in buckets if count == buckets[-1][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--answers", type=int, default=6, help="of each form")
    parser.add_argument("--drawn", type=int, default=40)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    forms = written_forms() + [drawn_form(draw) for _ in range(arguments.drawn)]
    server = subprocess.Popen([KVASIR, "serve", arguments.model, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    counts, late, wrong = collections.Counter(), 0, 0
    try:
        url = next(found[0].decode() for line in server.stdout if (found := re.search(rb"http://[^ :]+:\d+", line)))
        with concurrent.futures.ThreadPoolExecutor(arguments.streams) as pool:
            for form in forms:
                ends = list(pool.map(lambda seed, form=form: ask(url, form, seed), range(arguments.answers)))
                counts.update(end for end, _ in ends)
                in_the_middle = [message for end, message in ends if end == "400" and "the answer makes it" in message]
                late += len(in_the_middle)
                for end, content in ends:
                    wrong += end == "stop" and not jsonschema.Draft202012Validator(form).is_valid(json.loads(content))
                if in_the_middle:
                    print(f"{len(in_the_middle)} of {arguments.answers} late: {json.dumps(form)}", flush=True)
        result = {"forms": len(forms), "answers": dict(counts), "late": late, "not_valid": wrong, "longest_step_s": longest_step(url)}
    finally:
        server.terminate()
        server.wait()
    print(json.dumps(result))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
