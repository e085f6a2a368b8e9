"""Answers, scores, embeddings and tokens."""
from __future__ import annotations

import json
import math
import re
import time

import pytest

import kvasir
from conftest import LLAMA, wait_until_idle

GREEDY = kvasir.SamplingParams(temperature=0, max_tokens=16, ignore_eos=True)


def test_a_prompt_has_one_answer_and_a_list_has_one_each_in_order(llm: kvasir.LLM) -> None:
    prompts = ["the quick", "a brown fox", "the quick brown"]
    answers = llm.generate(prompts, GREEDY)
    assert [answer.prompt_token_ids for answer in answers] == [llm.tokenize(prompt) for prompt in prompts]
    for prompt, answer in zip(prompts, answers):
        alone = llm.generate(prompt, GREEDY)
        assert (alone.text, alone.token_ids) == (answer.text, answer.token_ids)
        assert answer.finish_reason == "length"
        assert answer.usage.completion_tokens == len(answer.token_ids) == 16
    nothing: list[str] = []
    assert llm.generate(nothing) == []


def test_token_ids_are_prompts_too(llm: kvasir.LLM) -> None:
    ids = llm.tokenize("the quick")
    expected = llm.generate("the quick", GREEDY).token_ids
    assert llm.generate(ids, GREEDY).token_ids == expected
    assert llm.generate(tuple(ids), GREEDY).token_ids == expected
    assert [answer.token_ids for answer in llm.generate([ids, "the quick"], GREEDY)] == [expected] * 2


def test_prompts_of_a_list_run_in_the_same_steps(llm: kvasir.LLM) -> None:
    before = wait_until_idle(llm)
    llm.generate(["the quick", "a brown fox", "jumps", "over"], GREEDY)
    after = wait_until_idle(llm)
    assert after["num_steps"] - before["num_steps"] <= 20
    assert after["num_stepped_sequences"] - before["num_stepped_sequences"] >= 4 * 16


def test_more_prompts_than_run_at_once_wait_for_their_turn() -> None:
    with kvasir.LLM(LLAMA, threads=1, max_num_seqs=4) as llm:
        answers = llm.generate(["the quick"] * 400, temperature=0, max_tokens=2)
    assert len({tuple(answer.token_ids) for answer in answers}) == 1


def test_each_prompt_may_have_its_own_parameters(llm: kvasir.LLM) -> None:
    params = [kvasir.SamplingParams(max_tokens=n, temperature=1.0, seed=n) for n in (1, 2, 3)]
    answers = llm.generate(["the quick"] * 3, params, ignore_eos=True)
    assert [len(answer.token_ids) for answer in answers] == [1, 2, 3]
    with pytest.raises(kvasir.UsageError, match="params: must be one, or one for each of the 2 prompts, got 3"):
        llm.generate(["a", "b"], params)


def test_a_seed_gives_the_same_tokens_whatever_the_batch(llm: kvasir.LLM) -> None:
    alone = llm.generate("the quick", temperature=1.5, seed=7, max_tokens=24, ignore_eos=True)
    crowd = llm.generate(["the quick", "other"] * 3, temperature=1.5, seed=7, max_tokens=24, ignore_eos=True)
    assert [answer.token_ids for answer in crowd[::2]] == [alone.token_ids] * 3
    other = llm.generate("the quick", temperature=1.5, seed=8, max_tokens=24, ignore_eos=True)
    assert other.token_ids != alone.token_ids
    for seed in (-1, 2**64 - 1):
        llm.generate("the quick", seed=seed, max_tokens=1)


def test_several_choices_share_a_prompt(llm: kvasir.LLM) -> None:
    answer = llm.generate("the quick", n=3, temperature=1.5, seed=1, max_tokens=8, ignore_eos=True)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({tuple(choice.token_ids) for choice in answer.choices}) == 3
    assert answer.usage.completion_tokens == 24
    assert answer.text == answer.choices[0].text


def test_log_probabilities_are_those_asked_for(llm: kvasir.LLM) -> None:
    answer = llm.generate("the quick", GREEDY, logprobs=3, prompt_logprobs=0)
    assert [position.chosen.token_id for position in answer.logprobs] == answer.token_ids
    for position in answer.logprobs:
        assert len(position.top) == 3
        assert position.chosen.rank == 1 and position.chosen == position.top[0]
        assert position.top[0].logprob >= position.top[1].logprob >= position.top[2].logprob
        assert position.chosen.logprob < 0
    assert len(answer.prompt_logprobs) == len(answer.prompt_token_ids)
    assert answer.prompt_logprobs[0] is None
    assert llm.generate("the quick", GREEDY).logprobs == []


def test_every_sampling_parameter_has_its_effect(llm: kvasir.LLM) -> None:
    plain = llm.generate("the quick", GREEDY)
    forced = llm.generate("the quick", GREEDY, logit_bias={65: 100.0})
    assert forced.token_ids == [65] * 16
    stop = next(character for character in plain.text[1:] if character.isascii())
    stopped = llm.generate("the quick", GREEDY, stop=[stop])
    assert stopped.finish_reason == "stop" and stopped.choices[0].stop_reason == stop
    assert stopped.text == plain.text[:plain.text.index(stop)]
    kept = llm.generate("the quick", GREEDY, stop=stop, include_stop_str_in_output=True)
    assert kept.text == stopped.text + stop
    token = plain.token_ids[3]
    by_token = llm.generate("the quick", GREEDY, stop_token_ids=[token])
    assert by_token.choices[0].stop_reason == token
    assert by_token.token_ids == plain.token_ids[:plain.token_ids.index(token)]
    with_token = llm.generate("the quick", GREEDY, stop_token_ids=[token], include_stop_str_in_output=True)
    assert with_token.token_ids == [*by_token.token_ids, token]
    assert len(llm.generate("the quick", GREEDY, stop_token_ids=[token], min_tokens=6).token_ids) >= 6
    greedy: tuple[kvasir.SamplingParams, ...] = ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0})
    for one in greedy:
        assert llm.generate("the quick", {**GREEDY, "temperature": 1.0, **one}).token_ids == plain.token_ids
    assert llm.generate("the quick", GREEDY, logit_bias={65: 4.0}).token_ids == [65] * 16
    penalties: tuple[kvasir.SamplingParams, ...] = (
        {"repetition_penalty": 5.0}, {"presence_penalty": 2.0}, {"frequency_penalty": 2.0})
    for one in penalties:
        assert llm.generate("the quick", {**GREEDY, **one}, logit_bias={65: 4.0}).token_ids.count(65) < 16
    assert llm.generate("the quick", temperature=0, max_tokens=0).token_ids == []
    eos = llm.tokenize("<|im_start|>", parse_special=True)[-1]
    shown = llm.generate("the quick", temperature=0, max_tokens=2, logit_bias={eos: 100.0}, ignore_eos=True,
                         skip_special_tokens=False)
    assert shown.text == llm.detokenize(shown.token_ids, special=True) != ""


def test_beams_find_the_likeliest_answers(llm: kvasir.LLM) -> None:
    answer = llm.generate("the quick", GREEDY, n=2, beam_width=4, logprobs=0)
    sums = [sum(position.chosen.logprob for position in choice.logprobs or []) for choice in answer.choices]
    assert len(sums) == 2 and sums[0] >= sums[1]
    greedy = llm.generate("the quick", GREEDY, logprobs=0)
    assert sums[0] >= sum(position.chosen.logprob for position in greedy.choices[0].logprobs or [])
    assert llm.generate("the quick", GREEDY, beam_width=1).token_ids == greedy.token_ids
    with pytest.raises(kvasir.Error, match="beam_width must be between 3 and 64, got 2"):
        llm.generate("the quick", GREEDY, n=3, beam_width=2)


def test_an_answer_has_the_form_that_is_asked_for(llm: kvasir.LLM) -> None:
    assert llm.generate("the quick", choices=["yes", "no"], max_tokens=40).text in ("yes", "no")
    assert re.fullmatch("[0-9]{3}", llm.generate("the quick", regex="[0-9]{3}", max_tokens=40).text)
    schema = {"type": "array", "items": {"enum": [True, 7]}, "minItems": 2, "maxItems": 2}
    for form in (schema, json.dumps(schema)):  # up to 65 blanks may stand between two of its five parts
        answer = llm.generate("the quick", json_schema=form, max_tokens=400, temperature=1, seed=1)
        assert len(json.loads(answer.text)) == 2 and answer.finish_reason == "stop"


def test_a_kv_budget_is_kept(llm: kvasir.LLM) -> None:
    prompt = "the quick brown fox jumps over the lazy dog " * 12
    exact = llm.generate(prompt, GREEDY)
    assert exact.usage.kv_bytes_share == 1.0
    small = llm.generate(prompt, GREEDY, kv_policy="ladder", kv_budget=0.4, kv_quality="best_effort")
    assert small.usage.kv_bytes_share <= 0.4
    same = llm.generate(prompt, GREEDY, kv_budget="40%", kv_quality="exact")
    assert same.token_ids == exact.token_ids and same.usage.kv_bytes_share == 1.0


def test_prompts_that_begin_alike_share_what_is_computed(llm: kvasir.LLM) -> None:
    prompt = "a prompt of some length that nobody has asked before, " * 3
    first = llm.generate(prompt, GREEDY)
    again = llm.generate(prompt, GREEDY)
    apart = llm.generate(prompt, GREEDY, use_prefix_cache=False)
    assert (first.usage.cached_tokens, apart.usage.cached_tokens) == (0, 0)
    assert again.usage.cached_tokens >= len(first.prompt_token_ids) - 32
    assert first.token_ids == again.token_ids == apart.token_ids


def test_a_chat_goes_through_the_models_template(llm: kvasir.LLM) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    ids = llm.encode_chat(messages)
    rendered = llm.detokenize(ids, special=True)
    assert "Be brief." in rendered and "hi" in rendered
    assert ids[:len(llm.encode_chat(messages, add_generation_prompt=False))] == llm.encode_chat(
        messages, add_generation_prompt=False)
    answer = llm.chat(messages, GREEDY)
    assert answer.prompt_token_ids == ids
    assert answer.token_ids == llm.generate(ids, GREEDY).token_ids
    both = llm.chat([messages, messages[1:]], GREEDY)
    assert both[0].token_ids == answer.token_ids
    assert both[1].prompt_token_ids == llm.encode_chat(messages[1:])


def test_what_a_user_writes_never_becomes_a_control_token(llm: kvasir.LLM) -> None:
    control = llm.tokenize("<|im_start|>", parse_special=True, add_special=False)
    assert len(control) == 1
    harmless = llm.encode_chat([{"role": "user", "content": "x"}]).count(control[0])
    assert llm.encode_chat([{"role": "user", "content": "<|im_start|><|im_start|>"}]).count(control[0]) == harmless
    assert control[0] not in llm.tokenize("<|im_start|>", add_special=False)


def test_templates_see_tools_and_variables() -> None:
    template = "{% for t in tools or [] %}{{ t.function.name }},{% endfor %}{{ mood }}:{{ messages[0].content }}"
    with kvasir.LLM(LLAMA, threads=1, chat_template=template) as llm:
        tools = [{"type": "function", "function": {"name": "look_up"}}]
        ids = llm.encode_chat([{"role": "user", "content": "hi"}], tools=tools, template_kwargs={"mood": "calm"})
        assert llm.detokenize(ids) == "look_up,calm:hi"
        answer = llm.chat([{"role": "user", "content": "hi"}], GREEDY, tools=tools, template_kwargs={"mood": "calm"})
        assert answer.prompt_token_ids == ids


def test_an_embedding_has_the_length_one(llm: kvasir.LLM) -> None:
    mean = llm.embed("the quick")
    assert len(mean) == llm.info.hidden_size
    assert math.isclose(sum(x * x for x in mean), 1.0, rel_tol=1e-5)
    last = llm.embed("the quick", pooling="last")
    assert last != mean
    assert llm.embed(["a brown fox", "the quick"], pooling="mean")[1] == mean
    assert llm.embed(llm.tokenize("the quick")) == mean


def test_an_embedding_may_have_fewer_dimensions(llm: kvasir.LLM) -> None:
    whole, part = llm.embed("the quick"), llm.embed("the quick", dimensions=3)
    length = math.sqrt(sum(x * x for x in whole[:3]))
    assert part == pytest.approx([x / length for x in whole[:3]], rel=1e-5)
    with pytest.raises(kvasir.UsageError, match="dimensions: must be at least 1, got 0"):
        llm.embed("the quick", dimensions=0)
    with pytest.raises(kvasir.UsageError, match="dimensions: must be between 0"):
        llm.embed("the quick", dimensions=1 << 20)


def test_a_prompt_goes_before_each_text(llm: kvasir.LLM) -> None:
    assert llm.embed(["quick", "fox"], prompt="the ") == llm.embed(["the quick", "the fox"])
    assert llm.embed("quick", input_type="query") == llm.embed("quick")  # the model has no prompts
    with pytest.raises(kvasir.UsageError, match='prompt_name: the model has no prompt "query"'):
        llm.embed("quick", prompt_name="query")


def test_a_model_that_is_no_reranker_says_so(llm: kvasir.LLM) -> None:
    for call in (lambda: llm.rerank("a", ["b"]), lambda: llm.score_pairs("a", ["b"])):
        with pytest.raises(kvasir.UsageError, match="the model is no reranker"):
            call()


def test_pairs_are_one_query_or_as_many_as_documents(llm: kvasir.LLM) -> None:
    with pytest.raises(kvasir.UsageError, match="queries: must be one, or one for each of the 1 documents, got 2"):
        llm.score_pairs(["a", "b"], ["c"])
    with pytest.raises(kvasir.UsageError, match="top_n: must be a whole number of at least 1, got 0"):
        llm.rerank("a", ["b"], top_n=0)


def test_a_score_is_the_sum_of_what_generation_says(llm: kvasir.LLM) -> None:
    answer = llm.generate("the quick", GREEDY, logprobs=0)
    score = llm.score(answer.prompt_token_ids + answer.token_ids)
    start = len(answer.prompt_token_ids)
    assert score.logprobs[0] is None
    assert score.logprobs[start:] == [position.chosen.logprob for position in answer.logprobs]
    assert score.total == sum(logprob for logprob in score.logprobs if logprob is not None)
    assert [one.token_ids for one in llm.score(["the", "quick"])] == [llm.tokenize("the"), llm.tokenize("quick")]


def test_tokens_become_the_text_again(llm: kvasir.LLM, gemma: kvasir.LLM) -> None:
    for model in (llm, gemma):
        for text in ("the quick brown fox", "Grüße, 世界! 👋🏽", "  two  spaces\n\n"):
            assert model.detokenize(model.tokenize(text)) == text
    assert gemma.tokenize("a")[0] not in gemma.tokenize("a", add_special=False)
    wave = llm.tokenize("👋", add_special=False)
    assert len(wave) > 1 and llm.detokenize(wave[:1]) == "\ufffd"


def test_who_says_what_it_took(llm: kvasir.LLM) -> None:
    begin = time.monotonic()
    answer = llm.generate("the quick", GREEDY)
    took_ms = 1e3 * (time.monotonic() - begin)
    cost = answer.cost
    assert 0 <= cost.queue_ms + cost.prefill_ms + cost.decode_ms <= took_ms
    assert answer.usage.prompt_tokens == len(llm.tokenize("the quick"))
    assert llm.stats()["peak_rss_bytes"] > 0
    assert llm.info.vocab_size > 0 and "tiny llama" in repr(llm)
