#!/usr/bin/env python3
"""Requests that all come at once, as `vllm bench serve --request-rate inf` sends them: burst.py URL MODEL TEXT...

Each asks for a stream of exactly --answer tokens (ignore_eos) after a prompt of --prompt tokens of the text files, no two
prompts alike from their first token on. The bodies are those of vLLM's backends `openai` and `openai-chat`
(vllm/benchmarks/lib/endpoint_request_func.py). Prints one JSON object.

Exit codes: 0 every request was answered with all of its tokens, 1 one was not.
"""
import argparse
import http.client
import json
import pathlib
import statistics
import sys
import threading
import time
import urllib.parse

TIMEOUT_S = 6 * 3600  # vLLM's own


def completion_body(model, prompt, num_tokens):
    return "/v1/completions", {
        "model": model, "prompt": prompt, "temperature": 0.0, "repetition_penalty": 1.0, "max_tokens": num_tokens,
        "logprobs": None, "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True,
        "min_tokens": num_tokens}


def chat_body(model, prompt, num_tokens):
    return "/v1/chat/completions", {
        "model": model, "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        "temperature": 0.0, "max_completion_tokens": num_tokens, "stream": True,
        "stream_options": {"include_usage": True}, "ignore_eos": True, "min_tokens": num_tokens}


BODIES = {"completions": completion_body, "chat": chat_body}


class Client:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port

    def post(self, path, body):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        connection.request("POST", path, json.dumps(body), {
            "Content-Type": "application/json", "Authorization": "Bearer none", "Accept": "*/*"})
        return connection.getresponse()

    def call(self, path, body):
        return json.load(self.post(path, body))


def prompts(client, text, length, count):
    """`count` texts of about `length` tokens."""
    tokens = client.call("/tokenize", {"prompt": text})["tokens"]
    room = len(tokens) - length
    if room < count:
        sys.exit(f"the files have {len(tokens)} tokens, {count} different prompts need {count + length}")
    step = room // count
    return [client.call("/detokenize", {"tokens": tokens[i * step:i * step + length]})["prompt"] for i in range(count)]


class Request(threading.Thread):
    """One request. Afterwards: fault (None: whole), first_s, end_s, usage."""

    def __init__(self, client, path, body, num_tokens, gate):
        super().__init__(daemon=True)
        self.client, self.path, self.body, self.num_tokens, self.gate = client, path, body, num_tokens, gate
        self.fault, self.first_s, self.end_s, self.usage = "not over", None, None, None

    def run(self):
        self.gate.wait()
        began = time.monotonic()
        try:
            self.fault = self.read(self.client.post(self.path, self.body), began)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.fault = f"{type(error).__name__}: {error}"
        self.end_s = time.monotonic() - began

    def read(self, answer, began):
        if answer.status != 200:
            return f"{answer.status}: {answer.read()[:200].decode(errors='replace')}"
        is_over = False
        for line in answer:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                is_over = True
                continue
            chunk = json.loads(line[6:])
            if chunk.get("choices") and self.first_s is None:
                self.first_s = time.monotonic() - began
            self.usage = chunk.get("usage") or self.usage
        if not is_over:
            return "the stream has no end"
        made = (self.usage or {}).get("completion_tokens")
        return None if made == self.num_tokens else f"{made} tokens of {self.num_tokens}"


def quantiles(seconds):
    seconds = sorted(seconds)
    return {"median": round(statistics.median(seconds), 2), "max": round(seconds[-1], 2)} if seconds else None


def burst(args, client):
    text = "".join(pathlib.Path(name).read_text() for name in args.text)
    gate = threading.Event()
    requests = [Request(client, *BODIES[args.api](args.model, prompt, args.answer), args.answer, gate)
                for prompt in prompts(client, text, args.prompt, args.count)]
    for request in requests:
        request.start()
    began = time.monotonic()
    gate.set()
    for request in requests:
        request.join()
    return requests, time.monotonic() - began


def summary(args, requests, seconds):
    whole = [request for request in requests if request.fault is None]
    faults = [request.fault for request in requests if request.fault]
    totals = {name: sum((request.usage or {}).get(f"{name}_tokens", 0) for request in whole)
              for name in ("prompt", "completion")}
    return {"api": args.api, "requests": len(requests), "whole": len(whole), "seconds": round(seconds, 1), **totals,
            "tokens_per_s": round(sum(totals.values()) / seconds, 1),
            "first_token_s": quantiles([request.first_s for request in whole]),
            "end_s": quantiles([request.end_s for request in whole]), "faults": sorted(set(faults))[:5]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("text", nargs="+", help="files that prompts are pieces of")
    parser.add_argument("--api", choices=BODIES, default="completions")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--prompt", type=int, default=1024, help="tokens of each prompt")
    parser.add_argument("--answer", type=int, default=128, help="tokens of each answer")
    args = parser.parse_args()
    requests, seconds = burst(args, Client(args.url))
    print(json.dumps(summary(args, requests, seconds)))
    return 0 if all(request.fault is None for request in requests) else 1


if __name__ == "__main__":
    sys.exit(main())
