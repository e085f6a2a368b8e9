"""Refusals: their exceptions and messages."""
from __future__ import annotations

import pathlib
import pickle
import types
from typing import Any

import pytest

import kvasir
from conftest import GEMMA, LLAMA, NO_TOKENIZER

HI = {"role": "user", "content": "hi"}
UNTYPED: Any = kvasir


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def refusal(kind: type[kvasir.Error], call: Any, *args: Any, **kwargs: Any) -> kvasir.Error:
    with pytest.raises(kvasir.Error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is kind, caught.value
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(("options", "says"), [
    ({"temprature": 1}, "temprature: there is no such parameter; did you mean temperature?"),
    ({"temperature": "hot"}, "temperature: must be a number, got str"),
    ({"temperature": -1}, "temperature must be finite and 0 or greater, got -1"),
    ({"temperature": float("nan")}, "temperature must be finite and 0 or greater, got nan"),
    ({"top_k": 1.5}, "top_k: must be a whole number, got float"),
    ({"top_k": True}, "top_k: must be a whole number, got bool"),
    ({"top_k": 2**31}, "top_k: must be between -2147483648 and 2147483647, got 2147483648"),
    ({"top_k": 2**70}, "top_k: is beyond 64 bits"),
    ({"n": 0}, "n must be between 1 and 128, got 0"),
    ({"logprobs": 1001}, "logprobs must be between 0 and 1000, got 1001"),
    ({"ignore_eos": 1}, "ignore_eos: must be True or False, got int"),
    ({"stop": 3}, "stop: must be a text or several, got int"),
    ({"stop": ["\ud800"]}, "stop: has half of a surrogate pair, which is no character"),
    ({"stop": [""]}, "stop must be strings of 1 to 65536 bytes, got 0 bytes"),
    ({"stop_token_ids": "abc"}, "stop_token_ids: must be token ids, got str"),
    ({"logit_bias": [1]}, "logit_bias: must be a dict of token ids and numbers, got list"),
    ({"logit_bias": {1: 101}}, "logit_bias must be between -100 and 100, got 101"),
    ({"seed": True}, "seed: must be a whole number, got bool"),
    ({"temperature": 10**400}, "temperature: is beyond what a float holds"),
    ({"stop": {"a": 1}}, "stop: must be a text or several, got dict"),
    ({"seed": 1.0}, "seed: must be a whole number, got float"),
    ({"kv_policy": "best"}, "kv_policy: must be one of none, ladder,"),
    ({"kv_budget": "much"}, "kv_budget: must be a share above 0 and at most 1, a percentage or a size"),
    ({"regex": "(a"}, "regex: "),
    ({"regex": 3}, "regex: must be a text, got int"),
    ({"choices": []}, "choices: there is no choice"),
    ({"json_schema": {"type": "none"}}, "json_schema: "),
    ({"kv_max_lost_share": 1.5}, "kv_max_lost_share: must be at least 0 and at most 1, got 1.5"),
    ({"kv_learn": 1}, "kv_learn: must be True or False, got int"),
    ({"kv_quality": "good"}, "kv_quality: must be exact, gate or best_effort, got 'good'"),
])
def test_a_wrong_parameter_is_named(llm: kvasir.LLM, options: dict[str, Any], says: str) -> None:
    error = refusal(kvasir.UsageError, llm.generate, "the quick", **options)
    assert str(error).startswith(says)
    assert error.param == next(iter(options))
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(("settings", "kind", "says"), [
    ({"thread": 1}, kvasir.UsageError, "thread: there is no such setting; did you mean threads?"),
    ({"threads": -1}, kvasir.UsageError, "threads: must be between 0 and 1024, is -1"),
    ({"memory": "much"}, kvasir.UsageError, "memory: "),
    ({"memory": 1 << 20}, kvasir.MachineError, ""),
    ({"memory": [1]}, kvasir.UsageError, "memory: must be a whole number, got list"),
    ({"ctx": 1 << 20}, kvasir.UsageError, "ctx: the model was trained for 2048 tokens"),
    ({"kv_type": "f8"}, kvasir.UsageError, "kv_type: must be q12, f16 or f32, got 'f8'"),
    ({"kv_disk": 1}, kvasir.UsageError, "kv_disk: there is no such setting"),
    ({"max_step_ms": -1}, kvasir.UsageError, "max_step_ms: must be 0 or greater, got -1"),
    ({"isa": "mmx"}, kvasir.UsageError, ""),
    ({"chat_template": "{% if"}, kvasir.UsageError, ""),
])
def test_a_wrong_setting_is_named(settings: dict[str, Any], kind: type[kvasir.Error], says: str) -> None:
    assert str(refusal(kind, kvasir.LLM, LLAMA, **settings)).startswith(says)


def test_a_model_that_cannot_be_used_is_named(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    assert str(broken) in str(refusal(kvasir.ModelError, kvasir.LLM, broken))
    missing = tmp_path / "missing.gguf"
    assert str(missing) in str(refusal(kvasir.ModelError, kvasir.LLM, missing))
    assert "did you mean smollm2:135m?" in str(refusal(kvasir.ModelError, kvasir.LLM, "smollm2:135"))
    assert "did you mean smollm2:135m?" in str(refusal(kvasir.ModelError, kvasir.pull, "smollm2:135"))


def test_a_prompt_must_be_one(llm: kvasir.LLM) -> None:
    assert "prompt: must not be empty" in str(refusal(kvasir.UsageError, llm.generate, ""))
    assert "outside the vocabulary" in str(refusal(kvasir.UsageError, llm.generate, [1 << 20]))
    assert "prompt: must be" in str(refusal(kvasir.UsageError, llm.generate, 7))
    assert "prompt: must be" in str(refusal(kvasir.UsageError, llm.generate, ["a", 7]))
    assert "prompt: must be" in str(refusal(kvasir.UsageError, llm.generate, [1, "a"]))
    assert "text: " in str(refusal(kvasir.UsageError, llm.tokenize, "\ud800"))
    assert "no id -1" in str(refusal(kvasir.UsageError, llm.detokenize, [-1]))
    error = refusal(kvasir.LimitError, llm.generate, "the quick", max_tokens=1 << 20)
    assert error.param == "max_tokens" and "2048" in str(error)


@pytest.mark.parametrize(("call", "says"), [
    (lambda llm: UNTYPED.LLM(None), "model: must be a text or a path, got None"),
    (lambda llm: UNTYPED.LLM(b"model.gguf"), "model: must be a text or a path, got bytes"),
    (lambda llm: UNTYPED.LLM(LLAMA, progress=5), "progress: must be a function or None, got int"),
    (lambda llm: UNTYPED.pull(None), "name: must be a text, got None"),
    (lambda llm: UNTYPED.pull("smollm2:135m", progress=5), "progress: must be a function or None, got int"),
    (lambda llm: llm.tokenize(None), "text: must be a text, got None"),
    (lambda llm: llm.tokenize("the", add_special=None), "add_special: must be True or False, got None"),
    (lambda llm: llm.detokenize([1], special=1), "special: must be True or False, got int"),
    (lambda llm: llm.detokenize(b"abc"), "token_ids: must be token ids, got bytes"),
    (lambda llm: llm.detokenize({1: 2}), "token_ids: must be token ids, got dict"),
    (lambda llm: llm.chat([{"role": "user", "content": nested(5000)}]), "messages: is nested too deeply"),
    (lambda llm: llm.detokenize(None), "token_ids: must be token ids, got None"),
    (lambda llm: llm.generate(None), "prompt: must be a text, token ids or a list of either, got None"),
    (lambda llm: llm.generate(b"the"), "prompt: must be a text, token ids or a list of either, got bytes"),
    (lambda llm: llm.generate({1: 2}), "prompt: must be a text, token ids or a list of either, got dict"),
    (lambda llm: llm.generate({1, 2}), "prompt: must be a text, token ids or a list of either, got set"),
    (lambda llm: llm.generate(["the", b"the"]), "prompt: must be a text or token ids, got bytes"),
    (lambda llm: llm.generate("the", 5), "params: must be a dict of parameters, or one for each prompt, got int"),
    (lambda llm: llm.generate("the", "hot"), "params: must be a dict of parameters, or one for each prompt, got str"),
    (lambda llm: llm.generate(["the"], ["hot"]), "params[0]: must be a dict of parameters, got str"),
    (lambda llm: llm.stream("the", "hot"), "params: must be one dict of parameters, got str"),
    (lambda llm: llm.stream("the", [{}]), "params: must be one dict of parameters, got list"),
    (lambda llm: llm.chat(None), "messages: must be a list of messages, or several, got None"),
    (lambda llm: llm.chat({"role": "user"}), "messages: must be a list of messages, or several, got dict"),
    (lambda llm: llm.chat([5]), "messages[0]: must be a list of messages, got int"),
    (lambda llm: llm.encode_chat("hi"), "messages: must be a list of messages, got str"),
    (lambda llm: llm.chat([HI], tools=5), "tools: must be a list of tools, got int"),
    (lambda llm: llm.chat([HI], template_kwargs=5), "template_kwargs: must be a dict, got int"),
])
def test_a_wrong_type_is_named(llm: kvasir.LLM, call: Any, says: str) -> None:
    error = refusal(kvasir.UsageError, call, llm)
    assert str(error) == says
    assert error.param == says.split(":")[0]


def test_a_conversation_may_come_from_a_generator(llm: Any) -> None:
    assert llm.encode_chat(iter([HI])) == llm.encode_chat([HI])
    assert llm.encode_chat([types.MappingProxyType(HI)]) == llm.encode_chat([HI])
    assert len(llm.chat(([HI] for _ in range(2)), max_tokens=1)) == 2


def test_one_bad_prompt_of_many_runs_none(llm: kvasir.LLM) -> None:
    before = llm.stats()["num_prompt_tokens"]
    refusal(kvasir.UsageError, llm.generate, ["the quick", ""], max_tokens=1)
    assert llm.stats()["num_prompt_tokens"] == before


def test_a_conversation_must_be_one(llm: kvasir.LLM, gemma: kvasir.LLM) -> None:
    hi = [{"role": "user", "content": "hi"}]
    assert "at least one" in str(refusal(kvasir.UsageError, llm.chat, []))
    assert "messages[0] has no content" in str(refusal(kvasir.UsageError, llm.chat, [{"role": "user"}]))
    assert "messages: " in str(refusal(kvasir.UsageError, llm.chat, [{"role": "user", "content": object()}]))
    assert "messages: " in str(refusal(kvasir.UsageError, llm.chat, [{"role": "user", "content": "\ud800"}]))
    assert "has a place of its own" in str(
        refusal(kvasir.UsageError, llm.chat, hi, template_kwargs={"messages": []}))
    assert "no chat template" in str(refusal(kvasir.UsageError, gemma.chat, hi))


def test_without_a_tokenizer_there_are_token_ids() -> None:
    with kvasir.LLM(NO_TOKENIZER, threads=1) as llm:
        assert len(llm.generate([1, 2, 3], temperature=0, max_tokens=4).token_ids) == 4
        assert "no tokenizer" in str(refusal(kvasir.ModelError, llm.generate, "the quick"))
        assert "no tokenizer" in str(refusal(kvasir.ModelError, llm.detokenize, [1]))
        assert "no tokenizer" in str(refusal(kvasir.ModelError, llm.chat, [{"role": "user", "content": "hi"}]))


def test_an_exception_of_a_callback_ends_the_loading() -> None:
    def stop(phase: str, fraction: float) -> None:
        raise RuntimeError(phase)

    with pytest.raises(RuntimeError, match="open"):
        kvasir.LLM(GEMMA, progress=stop)


def test_errors_survive_another_process(llm: kvasir.LLM) -> None:
    error = refusal(kvasir.UsageError, llm.generate, "the quick", top_p=2.0)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.param) == (kvasir.UsageError, str(error), "top_p")


def test_what_the_package_says_itself_reads_as_the_engines(llm: kvasir.LLM) -> None:
    with pytest.raises(kvasir.UsageError) as caught:
        llm.generate(5)  # type: ignore[call-overload]
    assert str(caught.value) == "prompt: must be a text, token ids or a list of either, got int"
    assert caught.value.param == "prompt"
