"""Parameters of requests. Each class is a dict with names that type checkers know: SamplingParams(temperature=0)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

Pooling = Literal["model", "mean", "last", "cls"]


class Settings(TypedDict, total=False):
    """Settings of an engine. Settings left out have the default in parentheses."""

    threads: int  #: (physical cores this process may use)
    ctx: int  #: most tokens of prompt and answer together (what the model was trained for, as far as memory allows)
    memory: int | str  #: for weights, KV and work: bytes, or a text such as "8GiB" (half of what is available)
    max_num_seqs: int  #: sequences that run at once (16)
    max_num_batched_tokens: int  #: tokens of one step (512, and up to 2048 for a mixture of experts)
    max_step_ms: float  #: how long a step may take that computes prompts while answers are generated; 0: any time (0)
    kv_cache_tokens: int  #: tokens that the KV cache holds as computed (what the sequences take, as far as memory allows)
    kv_type: Literal["q12", "f16", "f32"]  #: numbers in the KV cache; q12: 12 bits each ("q12")
    fast: bool  #: weights as bytes: faster prompts, more memory, not the file's numbers (False)
    prefix_cache: bool  #: prompts that begin alike share what is computed (True)
    public_prefixes: Iterable[str]  #: beginnings of prompts that stay findable for all
    prefill_only: bool  #: prompts that are only scored or embedded run layer by layer: less memory, same numbers (True)
    isa: Literal["ref", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"]  #: (the best that this machine has)
    chat_template: str  #: the text of a template instead of the model's own


class SamplingParams(TypedDict, total=False):
    """How the tokens of an answer are chosen and where it ends."""

    temperature: float  #: 0: always the most likely token (1)
    top_k: int  #: among the k most likely; 0: off (0)
    top_p: float  #: among the most likely that make up p; 1: off (1)
    min_p: float  #: at least p times as likely as the best; 0: off (0)
    repetition_penalty: float  #: divides logits of seen tokens; 1: off (1)
    presence_penalty: float  #: taken off each generated token, once (0)
    frequency_penalty: float  #: taken off per occurrence (0)
    logit_bias: Mapping[int, float]  #: token id to what is added to its logit
    allowed_token_ids: Iterable[int] | None  #: no other token is chosen, ends among them (all are allowed)
    seed: int | None  #: the same seed gives the same tokens, whatever else runs (a new one each time)
    n: int  #: answers to each prompt (1)
    beam_width: int  #: above 0: the n best answers of a search with so many beams, whole, instead of drawn ones (0)
    length_penalty: float  #: of beams: summed log-probabilities over length ** length_penalty (1)
    max_tokens: int | None  #: of an answer; None: as many as the context holds (None)
    min_tokens: int  #: nothing ends the answer before (0)
    ignore_eos: bool  #: the model's own end does not count (False)
    stop: str | Iterable[str] | None  #: texts that end the answer and are left out
    stop_token_ids: Iterable[int] | None  #: tokens that end the answer
    include_stop_str_in_output: bool  #: leave the stop text or token in (False)
    skip_special_tokens: bool  #: False shows control tokens as text (True)
    logprobs: int | None  #: alternatives told for each token of the answer; 0: only its own (None: nothing is told)
    prompt_logprobs: int | None  #: likewise for each token of the prompt


class RequestOptions(SamplingParams, total=False):
    """And the answer's form (one at most), how the request's keys and values are kept, and when it runs."""

    json_schema: str | bool | Mapping[str, Any]  #: the answer satisfies this JSON Schema
    regex: str  #: the whole answer matches
    grammar: str  #: the answer is of this grammar, in GBNF
    choices: Iterable[str]  #: the answer is one of these
    kv_policy: str  #: what becomes of keys and values that later tokens have seen ("ladder")
    kv_budget: float | str  #: what it may keep: a share of the bytes in f16 (0.3, "30%") or bytes ("64MiB") (1)
    kv_quality: Literal["exact", "gate", "best_effort"]  #: how far it may go to keep the budget ("gate")
    kv_max_lost_share: float | None  #: instead of kv_quality's: attention expected on what is dropped, 0 to 1 (None)
    kv_learn: bool  #: False: nothing is learned from this request, whatever a server learns from others (True)
    priority: int  #: lower runs first (0)
    use_prefix_cache: bool  #: False: neither finds computed prefixes nor leaves any (True)
