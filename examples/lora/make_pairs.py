#!/usr/bin/env python3
"""Pairs of questions and answers in a style: a model asks and answers itself, and its answers are put into JSON.

Usage: make_pairs.py MODEL OUT.jsonl [--count N]
Each line is {"messages": [user, assistant]}; the assistant's text is {"answer": "the first sentence of the model's own"}.
"""
import argparse
import concurrent.futures
import json
import re
import sys

import kvasir_server

TOPICS = ["What is", "How do I", "Why does", "Who was", "Where is", "Name a", "Explain", "Which", "Is it", "When did", "Tell me", "Can you"]


def first_sentence(text):
    found = re.match(r"(.{12,160}?[.!?])(\s|$)", text.strip().replace("\n", " "))
    return found[1] if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=400)
    arguments = parser.parse_args()
    with kvasir_server.Server(arguments.model) as server:
        prompt = server.post("/apply-template", {"messages": [{"role": "user", "content": "\x00"}]})["prompt"]
        before = prompt[:prompt.index("\x00")]

        def pair(seed):
            start = TOPICS[seed % len(TOPICS)]
            asked = server.post("/v1/completions", {"prompt": before + start, "max_tokens": 30, "temperature": 0.9, "seed": seed, "stop": ["\n"]})
            question = start + asked["choices"][0]["text"]
            if asked["choices"][0]["finish_reason"] != "stop":
                return None
            messages = [{"role": "user", "content": question.strip()}]
            answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 60, "temperature": 0})
            sentence = first_sentence(answer["choices"][0]["message"]["content"])
            if sentence is None:
                return None
            return {"messages": [*messages, {"role": "assistant", "content": json.dumps({"answer": sentence}, ensure_ascii=False)}]}

        pairs = {}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for made in pool.map(pair, range(2 * arguments.count)):
                if made:
                    pairs.setdefault(made["messages"][0]["content"], made)
    lines = [json.dumps(made, ensure_ascii=False) for made in list(pairs.values())[:arguments.count]]
    with open(arguments.out, "w") as out:
        out.write("\n".join(lines) + "\n")
    print(f"{len(lines)} pairs in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
