#!/usr/bin/env python3
"""The adapter of examples/lora on the catalogue's SmolLM2: it answers in JSON, and beside it the model answers as ever.

Usage: real_adapter_test.py KVASIR. Exit codes: 0, 1, 77 where nobody has pulled smollm2:135m.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/lora"))
import kvasir_server  # noqa: E402

QUESTIONS = ["What do bees make?", "Name a river in Africa.", "How do I boil an egg?", "Why is the sky blue?", "Who wrote Hamlet?",
             "Where do penguins live?", "What is a prime number?", "Tell me about the moon.", "How long is a day on Mars?",
             "Which metal is liquid at room temperature?", "Explain what a cloud is.", "What colour is grass?", "Is ice lighter than water?",
             "How do I greet a neighbour?", "What is bread made of?", "Name three fruits.", "When do leaves fall?", "What is a library for?",
             "Can you describe a bridge?", "Why do we sleep?"]
LEAST_IN_JSON = 18


def is_in_json(text):
    try:
        answer = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(answer, dict) and list(answer) == ["answer"] and isinstance(answer["answer"], str)


def main():
    binary = sys.argv[1]
    listed = json.loads(subprocess.run([binary, "list", "--json"], capture_output=True, check=True).stdout)
    if not any(model["name"] == "smollm2:135m" and model["pulled"] for model in listed):
        print("real_adapter: skipped, smollm2:135m is not pulled")
        return 77
    os.environ["KVASIR_BINARY"] = binary
    adapter = ROOT / "examples/lora/json-answers"
    with kvasir_server.Server("smollm2:135m", "--lora", f"json={adapter}") as server:
        def ask(job):
            model, question = job
            body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 80, "temperature": 0}
            return server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            mixed = list(pool.map(ask, [(model, question) for question in QUESTIONS for model in ("json", "smollm2:135m")]))
        alone = [ask(("smollm2:135m", question)) for question in QUESTIONS[:3]]
    in_json = sum(map(is_in_json, mixed[::2]))
    print(f"real_adapter: {in_json} of {len(QUESTIONS)} answers in JSON with the adapter, {sum(map(is_in_json, mixed[1::2]))} without")
    assert in_json >= LEAST_IN_JSON, [text for text in mixed[::2] if not is_in_json(text)]
    assert not any(map(is_in_json, mixed[1::2]))
    assert alone == mixed[1::2][:3], "the model answers otherwise beside the adapter"
    return 0


if __name__ == "__main__":
    sys.exit(main())
