"""Prompts asked one by one on an idle server and all at once on a crowded one: not a byte of an answer differs.

Usage: solo_equals_load_test.py [--count 1000] [--workers 24] [--seed 1]
Prompts of 1 to 600 tokens, many with a beginning in common; greedy and seeded sampling, n up to 3, penalties, some
with the top logprobs or the prompt's. Solo: one at a time, no prefix cache. Loads: all of them from many clients in
another order, streamed or not, with prefix cache, 16 seats and chunks of 96 tokens; once with a KV cache so small
that sequences are preempted, once with room for all. Text, tokens, logprobs and finish reasons must be the same to
the last digit. That hits, preemptions and full batches happened is checked too, by the metrics.
Exit codes: 0 the same, 1 not, 77 no binary or no model.
"""
import argparse
import collections
import itertools
import random
import threading

import running_server
from running_server import Server, progress

CONTEXT = 704  # the longest prompt and answer
SOLO_ARGS = ("--no-prefix-cache", "--max-model-len", CONTEXT)
# Nobody is refused: on a slow machine 24 prompts are more than may wait for so small a KV cache.
CROWDED_ARGS = ("--max-model-len", CONTEXT, "--chunk", 96, "--max-num-seqs", 16, "--ttft-target-ms", 0,
                "--max-queue-kv", 0)
LOADS = {"short of memory": (*CROWDED_ARGS, "--kv-cache-tokens", CONTEXT), "full house": CROWDED_ARGS}
# The minimum of a real load: preemptions, cached prompt tokens and sequences a step.
LEAST = {"short of memory": (1, 0, 2), "full house": (0, 1, 4)}


def make_requests(count, rng):
    families = [running_server.random_prompt(rng, 500) for _ in range(8)]
    requests = []
    for _ in range(count):
        length = round(600 ** rng.random())  # short ones are as frequent as long ones, by magnitude
        shared = rng.choice(families)[:rng.randint(0, length)] if rng.random() < 0.6 else []
        body = {"prompt": shared + running_server.random_prompt(rng, length - len(shared)),
                "max_tokens": rng.choice((16, 24, 32, 80)), "temperature": 0, "ignore_eos": rng.random() < 0.5}
        if rng.random() < 0.35:
            body |= {"temperature": rng.choice((0.7, 1.0)), "seed": rng.randrange(2**31)}
            body |= rng.choice(({"top_k": 0, "top_p": 1}, {"top_p": 0.9}, {"top_k": 40}, {"min_p": 0.05}))
        if rng.random() < 0.2:
            body |= {"n": rng.choice((2, 2, 3))}
        if rng.random() < 0.1:
            body |= {"presence_penalty": 0.5, "repetition_penalty": 1.1}
        body |= rng.choice(({}, {"logprobs": 0}, {"logprobs": 5}, {"logprobs": 20}))
        if rng.random() < 0.05:
            body |= {"echo": True, "logprobs": 2}
        requests.append(body)
    return requests


def joined(chunks):
    """The choices of a stream as if they had come at once."""
    choices = {}
    for piece in itertools.chain.from_iterable(chunk["choices"] for chunk in chunks):
        choice = choices.setdefault(piece["index"], {"index": piece["index"], "text": "", "logprobs": None})
        choice["text"] += piece["text"]
        choice["finish_reason"] = piece["finish_reason"]
        if piece["logprobs"]:
            whole = choice["logprobs"] or collections.defaultdict(list)
            for field, values in piece["logprobs"].items():
                whole[field] += values
            choice["logprobs"] = whole
    return choices


def answer_of(server, body, stream=False):
    """Choices by index."""
    if not stream:
        return {choice["index"]: choice for choice in server.complete(body)["choices"]}
    with server.response("/v1/completions", body | {"stream": True}) as response:
        events = list(running_server.events_of(response))
    if not events or events[-1] != "[DONE]":
        raise RuntimeError(f"the stream ended with {events[-1:]}")
    return joined(events[:-1])


def comparable(choices):
    return {index: {field: choice[field] for field in ("text", "finish_reason", "logprobs")}
            for index, choice in choices.items()}


def ask_all_at_once(server, requests, num_workers, rng):
    """Answers by index; an exception in place of one that did not come."""
    order = list(range(len(requests)))
    rng.shuffle(order)
    streamed = {index: rng.random() < 0.5 for index in order}
    todo, answers = iter(order), {}
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                index = next(todo, None)
            if index is None:
                return
            try:
                answer = comparable(answer_of(server, requests[index], streamed[index]))
            except Exception as error:
                answer = error
            with lock:
                answers[index] = answer
                if len(answers) % 100 == 0:
                    progress(f"load: {len(answers)} of {len(requests)}")

    workers = [threading.Thread(target=work) for _ in range(num_workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return answers


def ask_one_by_one(server, requests):
    answers = []
    for body in requests:
        answers.append(comparable(answer_of(server, body)))
        if len(answers) % 100 == 0:
            progress(f"solo: {len(answers)} of {len(requests)}")
    return answers


def first_difference(body, solo, load):
    if isinstance(load, Exception):
        return f"{load!r}"
    for index, fields in solo.items():
        for field, value in fields.items():
            if load.get(index, {}).get(field) != value:
                sampling = {name: value for name, value in body.items() if name != "prompt"}
                return (f"{len(body['prompt'])} tokens, {sampling}: choice {index}, {field}: "
                        f"solo {str(value)[:300]}, load {str(load.get(index, {}).get(field))[:300]}")
    return "there are more choices under load" if set(load) != set(solo) else None


def too_light(name, metrics):
    """What a load did not do that it is there for."""
    least_preemptions, least_cached, least_sequences = LEAST[name]
    sequences_per_step = metrics["step_sequences_sum"] / metrics["step_sequences_count"]
    texts = []
    if metrics["preemptions_total"] < least_preemptions:
        texts.append(f"{name}: nobody was preempted")
    if metrics["cached_prompt_tokens_total"] < least_cached:
        texts.append(f"{name}: nothing came from the prefix cache")
    if sequences_per_step < least_sequences:
        texts.append(f"{name}: {sequences_per_step:.1f} sequences a step")
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    running_server.require_model()
    rng = random.Random(options.seed)
    requests = make_requests(options.count, rng)
    with Server(*SOLO_ARGS) as server:
        solo = ask_one_by_one(server, requests)
        alone = server.metrics()
    failures, figures = [], {}
    if alone["cached_prompt_tokens_total"] or alone["preemptions_total"]:
        failures.append("solo was not solo: tokens came from the cache or sequences were preempted")
    for name, args in LOADS.items():
        with Server(*args) as server:
            load = ask_all_at_once(server, requests, options.workers, rng)
            metrics = server.wait_idle()
        found = [first_difference(body, solo[index], load[index]) for index, body in enumerate(requests)]
        failures += too_light(name, metrics) + [f"{name}: {text}" for text in found if text]
        figures[name] = {"differing": sum(map(bool, found)), "preemptions": metrics["preemptions_total"],
                         "cached_tokens": metrics["cached_prompt_tokens_total"],
                         "prompt_tokens": metrics["prompt_tokens_total"],
                         "tokens": metrics["generation_tokens_total"],
                         "sequences_per_step": round(metrics["step_sequences_sum"] / metrics["step_sequences_count"], 1)}
        progress(f"{name}: {figures[name]}")
    return running_server.report(failures, requests=len(requests), loads=figures)


if __name__ == "__main__":
    raise SystemExit(main())
