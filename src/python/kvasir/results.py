"""The results of requests."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from . import _kvasir
from .errors import Error

FinishReason = Literal["stop", "length", "cancelled", "error"]


@dataclass(frozen=True)
class TokenLogprob:
    token_id: int
    logprob: float  #: natural log, after penalties and bias, before temperature
    rank: int  #: 1: the most likely


@dataclass(frozen=True)
class PositionLogprobs:
    chosen: TokenLogprob
    top: list[TokenLogprob]  #: most likely first


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int  #: of all choices
    cached_tokens: int  #: of the prompt, from the prefix cache
    kv_bytes_share: float  #: of the KV that kv_budget is of: what its policy kept when it acted last
    kv_bytes_share_mean: float  #: over all times
    kv_bytes_share_peak: float  #: the most, just before it acted


@dataclass(frozen=True)
class Cost:
    queue_ms: float  #: until it first left the queue
    prefill_ms: float  #: from there until its prompt was computed
    decode_ms: float  #: from there until its last token
    cpu_ms: float  #: its tokens' share of the steps' time on all threads
    kv_byte_seconds: float  #: keys and values it held, over time


@dataclass(frozen=True)
class Piece:
    """The output of one step for one choice. The text is whole characters and may lag behind the tokens."""

    index: int  #: which choice
    text: str
    token_ids: list[int]
    logprobs: list[PositionLogprobs]  #: of the tokens, when asked for
    finish_reason: FinishReason | None  #: in the choice's last piece
    stop_reason: str | int | None  #: the stop text or token that ended it
    usage: Usage  #: so far


@dataclass(frozen=True)
class Choice:
    index: int
    text: str
    token_ids: list[int]
    logprobs: list[PositionLogprobs]  #: of the tokens, when asked for
    finish_reason: FinishReason
    stop_reason: str | int | None  #: the stop text or token that ended it


@dataclass(frozen=True)
class Answer:
    """To one prompt. `text`, `token_ids`, `logprobs` and `finish_reason` are those of the first choice."""

    prompt_token_ids: list[int]
    choices: list[Choice]
    usage: Usage
    cost: Cost
    prompt_logprobs: list[PositionLogprobs | None]  #: of the prompt's tokens, when asked for; none of the first

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def token_ids(self) -> list[int]:
        return self.choices[0].token_ids

    @property
    def logprobs(self) -> list[PositionLogprobs]:
        return self.choices[0].logprobs

    @property
    def finish_reason(self) -> FinishReason:
        return self.choices[0].finish_reason


@dataclass(frozen=True)
class Score:
    """How likely a text is."""

    token_ids: list[int]
    logprobs: list[float | None]  #: of each token given those before it; None for the first
    total: float  #: the sum


@dataclass(frozen=True)
class Ranked:
    """A document among those that were ranked."""

    index: int  #: its place among them
    score: float  #: how well it answers the query


@dataclass(frozen=True)
class ModelInfo:
    name: str
    architecture: str
    quantization: str
    num_parameters: int
    weight_bytes: int
    num_layers: int
    hidden_size: int
    vocab_size: int
    context_length_tokens: int  #: what the model was trained for
    max_model_len_tokens: int  #: what this engine takes: prompt and answer together
    has_tokenizer: bool
    has_chat_template: bool


def _position(position: _kvasir.Position) -> PositionLogprobs:
    chosen, top = position
    return PositionLogprobs(TokenLogprob(*chosen), [TokenLogprob(*token) for token in top])


def piece_of(output: _kvasir.Output) -> Piece:
    """Raises the request's error."""
    if output.error is not None:
        raise output.error
    stop_token = output.stop_token
    return Piece(
        index=output.choice,
        text=output.text,
        token_ids=output.token_ids,
        logprobs=[_position(position) for position in output.logprobs],
        finish_reason=output.finish_reason,
        stop_reason=output.stop_string or (stop_token if stop_token >= 0 else None),
        usage=Usage(*output.usage),
    )


class Gathering:
    """The pieces of one request on their way to an Answer."""

    def __init__(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt_token_ids = list(prompt_token_ids)
        self._pieces: dict[int, list[Piece]] = {}
        self._last: _kvasir.Output | None = None
        self._prompt_logprobs: list[PositionLogprobs | None] = []
        self._error: Error | None = None
        self.embedding: list[float] = []

    def add(self, output: _kvasir.Output) -> None:
        self._last = output
        if output.error is not None:
            self._error = self._error or output.error
            return
        self._pieces.setdefault(output.choice, []).append(piece_of(output))
        if output.prompt_logprobs:
            self._prompt_logprobs = [None, *(_position(position) for position in output.prompt_logprobs[1:])]
        if output.embedding:
            self.embedding = output.embedding

    def answer(self) -> Answer:
        """Once the request has finished. Raises its error."""
        if self._error is not None:
            raise self._error
        assert self._last is not None
        return Answer(
            prompt_token_ids=self._prompt_token_ids,
            choices=[_choice(index, self._pieces[index]) for index in sorted(self._pieces)],
            usage=Usage(*self._last.usage),
            cost=Cost(*self._last.cost),
            prompt_logprobs=self._prompt_logprobs,
        )


def _choice(index: int, pieces: list[Piece]) -> Choice:
    last = pieces[-1]
    assert last.finish_reason is not None
    return Choice(
        index=index,
        text="".join(piece.text for piece in pieces),
        token_ids=[token for piece in pieces for token in piece.token_ids],
        logprobs=[position for piece in pieces for position in piece.logprobs],
        finish_reason=last.finish_reason,
        stop_reason=last.stop_reason,
    )
