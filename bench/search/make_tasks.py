#!/usr/bin/env python3
"""Writes tasks for `kvasir eval search`: make_tasks.py sums|words COUNT [--seed 1] > tasks.jsonl

- sums: two numbers up to 60 are added.
- words: a problem of one line with one step.

The same arguments give the same lines. Exit codes: 0, 2.
"""
import argparse
import json
import random

NAMES = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo"]
THINGS = ["apples", "books", "coins", "pencils", "stamps", "marbles", "cards", "shells"]


def sum_task(rng):
    a, b = rng.randint(1, 60), rng.randint(1, 60)
    return f"What is {a} + {b}? Answer with the number.", a + b


def word_task(rng):
    name, other = rng.sample(NAMES, 2)
    thing = rng.choice(THINGS)
    a, b = rng.randint(2, 20), rng.randint(2, 9)
    kind = rng.randrange(4)
    if kind == 0:
        return f"{name} has {a} {thing}. {other} gives {name} {b} more. How many {thing} does {name} have?", a + b
    if kind == 1:
        return f"{name} has {a + b} {thing} and gives {b} to {other}. How many {thing} are left?", a
    if kind == 2:
        return f"{name} buys {b} bags with {a} {thing} each. How many {thing} is that?", a * b
    return f"{name} and {other} share {2 * a} {thing} equally. How many {thing} does each get?", a


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["sums", "words"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for _ in range(args.count):
        prompt, answer = (sum_task if args.kind == "sums" else word_task)(rng)
        print(json.dumps({"prompt": prompt, "answer": str(answer), "check": "number"}))


if __name__ == "__main__":
    main()
