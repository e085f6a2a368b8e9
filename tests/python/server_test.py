"""What comes back in process equals what `kvasir serve` answers over HTTP, to the token and to the bit."""
from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import kvasir
from conftest import GEMMA, LLAMA, TIME_LIMIT_S

BINARY = os.environ.get("KVASIR_BINARY", "")
REAL = "smollm2:135m"
TEXT = "The capital of France is"
CHAT = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Name three primary colours."}]
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 24}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_p": 0.95, "top_k": 40, "seed": 12, "max_tokens": 24}

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason="KVASIR_BINARY names no kvasir")


class Pair:
    """A model in process, and behind a server."""

    def __init__(self, model: str, llm: kvasir.LLM, url: str) -> None:
        self.model, self.llm, self.url = model, llm, url

    def post(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return json.load(answer)


@pytest.fixture(scope="module", params=[LLAMA, GEMMA, REAL], ids=["llama", "gemma", "smollm2"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    model = request.param
    try:
        llm = kvasir.LLM(model, threads=1)
    except kvasir.ModelError as error:
        pytest.skip(str(error))
    command = [BINARY, "serve", model, "--port", "0", "--threads", "1", "--ttft-target-ms", "0"]
    with llm, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            urls = (re.match(r"http://[^ ]*:\d+", line) for line in server.stdout)
            url = next(found[0] for found in urls if found)
            yield Pair(model, llm, url)
        finally:
            server.terminate()


def bits(number: float) -> bytes:
    """As the engine has it: the server writes as many digits as tell a float32 from its neighbours."""
    return struct.pack("<f", number)


@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_completions_are_the_same_tokens(pair: Pair, params: dict[str, Any]) -> None:
    mine = pair.llm.generate(TEXT, **params)
    served = pair.post("/v1/generate", prompt=TEXT, **params)
    assert mine.token_ids == served["token_ids"] and len(mine.token_ids) > 1
    assert mine.text == served["text"]
    assert mine.finish_reason == served["finish_reason"]
    assert mine.usage.prompt_tokens == served["prompt_tokens"]


@pytest.mark.parametrize("pair", [LLAMA, REAL], ids=["llama", "smollm2"], indirect=True)  # gemma has no chat template
@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_chats_are_the_same(pair: Pair, params: dict[str, Any]) -> None:
    mine = pair.llm.chat(CHAT, **params, logprobs=2)
    served = pair.post("/v1/chat/completions", messages=CHAT, **params, logprobs=True, top_logprobs=2)
    choice = served["choices"][0]
    assert mine.text == choice["message"]["content"]
    assert mine.finish_reason == choice["finish_reason"]
    assert mine.usage.prompt_tokens == served["usage"]["prompt_tokens"]
    content = choice["logprobs"]["content"]
    assert len(content) == len(mine.logprobs) > 1
    for position, told in zip(mine.logprobs, content):
        assert bits(position.chosen.logprob) == bits(told["logprob"])
        assert [bits(token.logprob) for token in position.top] == [bits(top["logprob"]) for top in told["top_logprobs"]]
    tokens = pair.post("/tokenize", messages=CHAT)["tokens"]
    assert tokens == mine.prompt_token_ids == pair.llm.encode_chat(CHAT)


def test_scores_are_the_log_probabilities_of_an_echo(pair: Pair) -> None:
    mine = pair.llm.score(TEXT)
    served = pair.post("/v1/completions", prompt=TEXT, max_tokens=0, echo=True, logprobs=0)
    told = served["choices"][0]["logprobs"]["token_logprobs"]
    assert told[0] is None and mine.logprobs[0] is None
    assert [bits(number or 0) for number in mine.logprobs[1:]] == [bits(number) for number in told[1:]]


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_embeddings_are_the_same_bits(pair: Pair, pooling: Any) -> None:
    texts = [TEXT, "A second text."]
    served = pair.post("/v1/embeddings", input=texts, pooling=pooling)
    for vector, told in zip(pair.llm.embed(texts, pooling=pooling), served["data"]):
        assert [bits(number) for number in vector] == [bits(number) for number in told["embedding"]]


def test_streams_are_the_same_tokens(pair: Pair) -> None:
    mine = [token for piece in pair.llm.stream(TEXT, **SEEDED) for token in piece.token_ids]
    assert mine == pair.post("/v1/generate", prompt=TEXT, **SEEDED)["token_ids"]


def test_tokens_and_texts_are_the_same(pair: Pair) -> None:
    text = "Grüße, 世界! 👋🏽  two  spaces"
    ids = pair.llm.tokenize(text)
    assert ids == pair.post("/tokenize", prompt=text)["tokens"]
    assert pair.llm.detokenize(ids) == pair.post("/detokenize", tokens=ids, skip_special_tokens=True)["prompt"]


def test_kv_policies_keep_the_same(pair: Pair) -> None:
    prompt = (TEXT + " Paris. ") * 40
    options: dict[str, Any] = {"kv_policy": "ladder", "kv_budget": 0.5, "kv_max_lost_share": 1, "kv_learn": False}
    mine = pair.llm.generate(prompt, **GREEDY, **options)
    served = pair.post("/v1/generate", prompt=prompt, **GREEDY, **options)
    assert mine.token_ids == served["token_ids"]


def test_several_choices_are_the_same(pair: Pair) -> None:
    mine = pair.llm.generate(TEXT, **SEEDED, n=3)
    served = pair.post("/v1/completions", prompt=TEXT, **SEEDED, n=3)
    assert [choice.text for choice in mine.choices] == [choice["text"] for choice in served["choices"]]
