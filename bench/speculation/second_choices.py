#!/usr/bin/env python3
"""What a tree of guesses could add to a chain: how often the second place where the text's end stood before is right.

Answers are greedy. For each token of an answer, the two longest matches of the text before it whose next tokens differ are
looked at. A row for the second choice pays where its chance is above the price of a row, which --price names.

Usage: second_choices.py MODEL --workload FILE [--max-tokens N] [--price P] [--out FILE]
"""
import argparse
import collections
import http.client
import json
import pathlib
import sys

import compare

LONGEST = 64


def tokens_of(server, text):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/tokenize", json.dumps({"content": text}), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())["tokens"]


def choices_at(text):
    """Up to two (length of the match, token behind it), the longest first, the latest of equal ones."""
    lengths = {}
    for place in range(len(text) - 2, 0, -1):
        length = 0
        while length <= min(place, LONGEST - 1) and text[place - length] == text[-1 - length]:
            length += 1
        if length >= 2 and length > lengths.get(text[place + 1], 0):
            lengths[text[place + 1]] = length
    return sorted(((length, token) for token, length in lengths.items()), key=lambda choice: -choice[0])[:2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--workload", required=True)
    parser.add_argument("--max-tokens", type=int, default=120)
    parser.add_argument("--price", type=float, default=0.1, help="of a row, in tokens")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    server = compare.Server(arguments.model, "off", 1)
    counts = collections.defaultdict(lambda: collections.Counter())
    try:
        for job in map(json.loads, open(arguments.workload)):
            answer = server.answer(job, "once", arguments.max_tokens, 0.0, 7)[0]
            prompt = job.get("prompt") or "\n".join(message["content"] for message in job["messages"])
            before, behind = tokens_of(server, prompt), tokens_of(server, answer)
            for i, token in enumerate(behind):
                found = choices_at(before + behind[:i])
                if not found:
                    continue
                count = counts[min(found[0][0], 8)]
                count["places"] += 1
                count["first"] += found[0][1] == token
                count["second"] += len(found) > 1 and found[1][1] == token
    finally:
        server.stop()
    rows = [{"match": length, "places": count["places"], "first": round(count["first"] / count["places"], 3),
             "second": round(count["second"] / count["places"], 3)} for length, count in sorted(counts.items())]
    for row in rows:
        print(row, "pays" if row["second"] > arguments.price else "does not pay")
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps({"model": arguments.model, "price": arguments.price, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
