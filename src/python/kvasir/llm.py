"""A model in this process."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from . import _kvasir
from .errors import usage_error, wrong_type
from .parameters import Pooling, RequestOptions, SamplingParams, Settings
from .results import Answer, Gathering, ModelInfo, Ranked, Score
from .stream import Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

Prompt = str | Sequence[int]  #: a text, or its token ids
Conversation = Sequence[Mapping[str, Any]]  #: turns, each with role and content and what else the chat template knows


class LLM:
    """A model, loaded from a .gguf file or by a catalogue's name ("smollm2:135m"), and an engine that runs it.

    Any thread may call anything, and requests of all threads run together. Close it, or use it in a `with`, to have
    its memory back; whatever is left at the interpreter's exit is closed then.
    """

    def __init__(self, model: str | os.PathLike[str], *, progress: Callable[[str, float], object] | None = None,
                 **settings: Unpack[Settings]) -> None:
        """`progress` is called with a phase and a fraction while the model is loaded."""
        self._engine = _kvasir.Engine()
        self._engine.load(_path(model), settings, _progress(progress))
        self.info = ModelInfo(**self._engine.info())

    def close(self) -> None:
        """Cancels what runs and frees the memory. Further calls raise UsageError."""
        self._engine.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "" if self._engine.is_open else " (closed)"
        return f"<kvasir.LLM {self.info.name}, {self.info.quantization}{state}>"

    def stats(self) -> dict[str, int]:
        """The engine's counts, and the requests that run and wait."""
        return self._engine.stats()

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """A text's tokens, BOS and EOS where the model wants them; parse_special: control tokens mean themselves."""
        return self._engine.encode(text, add_special, parse_special)

    def detokenize(self, token_ids: Iterable[int], *, special: bool = False) -> str:
        """Their text; special: with control tokens. Bytes that are no character become U+FFFD."""
        return self._engine.decode(token_ids, special).decode("utf-8", "replace")

    def encode_chat(self, messages: Conversation, *, tools: Sequence[Mapping[str, Any]] = (),
                    template_kwargs: Mapping[str, Any] | None = None, add_generation_prompt: bool = True) -> list[int]:
        """A conversation through the model's chat template, which sees messages and tools as they are. Its texts
        never become control tokens, whatever they look like."""
        return self._encode_chat("messages", messages, tools, template_kwargs, add_generation_prompt)

    @overload
    def generate(self, prompts: Prompt, params: SamplingParams | None = None,  # type: ignore[overload-overlap]  # a text is one prompt
                 **options: Unpack[RequestOptions]) -> Answer: ...
    @overload
    def generate(self, prompts: Sequence[Prompt], params: SamplingParams | Sequence[SamplingParams] | None = None,
                 **options: Unpack[RequestOptions]) -> list[Answer]: ...
    def generate(self, prompts: Any, params: Any = None, **options: Any) -> Any:
        """Continues a prompt, or each of several, which run together. `params` are those of all prompts or, in a
        list, of each; what is given by name is added."""
        prompt_ids, is_one = self._prompts(prompts)
        answers = [gathering.answer() for gathering in self._run(prompt_ids, _each(params, options, len(prompt_ids)))]
        return answers[0] if is_one else answers

    @overload
    def chat(self, messages: Conversation, params: SamplingParams | None = None, *,
             tools: Sequence[Mapping[str, Any]] = (), template_kwargs: Mapping[str, Any] | None = None,
             **options: Unpack[RequestOptions]) -> Answer: ...
    @overload
    def chat(self, messages: Sequence[Conversation],
             params: SamplingParams | Sequence[SamplingParams] | None = None, *,
             tools: Sequence[Mapping[str, Any]] = (), template_kwargs: Mapping[str, Any] | None = None,
             **options: Unpack[RequestOptions]) -> list[Answer]: ...
    def chat(self, messages: Any, params: Any = None, *, tools: Sequence[Mapping[str, Any]] = (),
             template_kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """The model's turn in a conversation, or in each of several. Otherwise as generate() and encode_chat()."""
        items = _list("messages", messages, "a list of messages, or several")
        is_one = not items or isinstance(items[0], Mapping)
        named = [("messages", items)] if is_one else [(f"messages[{i}]", item) for i, item in enumerate(items)]
        prompts = [self._encode_chat(name, conversation, tools, template_kwargs, True)
                   for name, conversation in named]
        answers = self.generate(prompts, params, **options)
        return answers[0] if is_one else answers

    def stream(self, prompt: Prompt, params: SamplingParams | None = None,
               **options: Unpack[RequestOptions]) -> Stream:
        """As generate(), in pieces: `for piece in llm.stream(...)` or `async for`."""
        prompt_ids, is_one = self._prompts(prompt)
        if not is_one:
            raise usage_error("prompt: a stream has one", "prompt")
        if params is not None and not isinstance(params, Mapping):
            raise wrong_type("params", "one dict of parameters", params)
        return Stream(self, self._engine.submit([(prompt_ids[0], {**(params or {}), **options})]))

    def stream_chat(self, messages: Conversation, params: SamplingParams | None = None, *,
                    tools: Sequence[Mapping[str, Any]] = (), template_kwargs: Mapping[str, Any] | None = None,
                    **options: Unpack[RequestOptions]) -> Stream:
        """As chat(), in pieces."""
        return self.stream(self.encode_chat(messages, tools=tools, template_kwargs=template_kwargs), params, **options)

    @overload
    def embed(  # type: ignore[overload-overlap]  # a text is one prompt
            self, texts: Prompt, *, pooling: Pooling = "model", dimensions: int | None = None,
            prompt_name: str | None = None, prompt: str | None = None,
            input_type: str | None = None) -> list[float]: ...
    @overload
    def embed(self, texts: Sequence[Prompt], *, pooling: Pooling = "model", dimensions: int | None = None,
              prompt_name: str | None = None, prompt: str | None = None,
              input_type: str | None = None) -> list[list[float]]: ...
    def embed(self, texts: Any, *, pooling: Pooling = "model", dimensions: int | None = None,
              prompt_name: str | None = None, prompt: str | None = None, input_type: str | None = None) -> Any:
        """The direction of a text, or of each of several, at length 1: the mean of its tokens' hidden states, or that of
        the last or the first one ("cls"). "model": as the model's file says, else the mean. `dimensions`: the first so
        many numbers alone. Before each text goes `prompt`, or the model's own called `prompt_name`, or its own for
        `input_type`, such as "query" or "document"."""
        before = self._engine.embedding_prompt(prompt, prompt_name, input_type)
        prompt_ids, is_one = self._prompts(_prompted(texts, before) if before else texts)
        options = {"max_tokens": 0, "use_prefix_cache": False, "pooling": pooling, "dimensions": dimensions}
        embeddings = []
        for gathering in self._run(prompt_ids, [options] * len(prompt_ids)):
            gathering.answer()
            embeddings.append(gathering.embedding)
        return embeddings[0] if is_one else embeddings

    def rerank(self, query: str, documents: Iterable[str], *, top_n: int | None = None, instruction: str = "",
               truncate: bool = False) -> list[Ranked]:
        """Documents by how well they answer a query, the best first; `top_n`: only so many. Otherwise as score_pairs()."""
        texts = _list("documents", documents, "a list of texts")
        if top_n is not None and (isinstance(top_n, bool) or not isinstance(top_n, int) or top_n < 1):
            raise usage_error(f"top_n: must be a whole number of at least 1, got {top_n!r}", "top_n")
        scores = self.score_pairs(query, texts, instruction=instruction, truncate=truncate)
        ranked = [Ranked(index, score) for index, score in enumerate(scores)]
        return sorted(ranked, key=lambda document: -document.score)[:top_n]

    def score_pairs(self, queries: str | Iterable[str], documents: Iterable[str], *, instruction: str = "",
                    truncate: bool = False) -> list[float]:
        """How well each document answers the query, or each the query at its place: 0 to 1 from a reranker, the cosine
        from an embedding model. `instruction` is the task, for rerankers that are told one; `truncate` cuts documents
        that are too long. UsageError where the model is neither."""
        answers = _list("documents", documents, "a list of texts")
        asked = [queries] * len(answers) if isinstance(queries, str) else _list("queries", queries, "a text, or a list")
        if len(asked) != len(answers):
            raise usage_error(f"queries: must be one, or one for each of the {len(answers)} documents, got {len(asked)}",
                              "queries")
        if self._engine.pair_scoring() == "embeddings":
            return self._cosines(asked, answers)
        pairs = list(zip(asked, answers))
        gatherings = [Gathering([]) for _ in pairs]
        _gather(self._engine.submit_pairs(pairs, instruction, truncate), gatherings)
        scores = []
        for gathering in gatherings:
            answer = gathering.answer()
            alternatives = [(token.token_id, token.logprob) for position in answer.logprobs[:1] for token in position.top]
            scores.append(self._engine.pair_score(gathering.embedding, alternatives))
        return scores

    def _cosines(self, queries: Sequence[str], documents: Sequence[str]) -> list[float]:
        of_query, of_document = self._vectors(queries, "query"), self._vectors(documents, "document")
        return [sum(x * y for x, y in zip(of_query[query], of_document[document]))
                for query, document in zip(queries, documents)]

    def _vectors(self, texts: Sequence[str], input_type: str) -> dict[str, list[float]]:
        each = list(dict.fromkeys(texts))
        return dict(zip(each, self.embed(each, input_type=input_type))) if each else {}

    @overload
    def score(self, texts: Prompt) -> Score: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, texts: Sequence[Prompt]) -> list[Score]: ...
    def score(self, texts: Any) -> Any:
        """How likely each token of a text, or of each of several, is after those before it."""
        prompt_ids, is_one = self._prompts(texts)
        options = {"max_tokens": 0, "use_prefix_cache": False, "prompt_logprobs": 0}
        scores = []
        for gathering in self._run(prompt_ids, [options] * len(prompt_ids)):
            answer = gathering.answer()
            logprobs = [None if position is None else position.chosen.logprob for position in answer.prompt_logprobs]
            total = sum(logprob for logprob in logprobs if logprob is not None)
            scores.append(Score(answer.prompt_token_ids, logprobs, total))
        return scores[0] if is_one else scores

    def _encode_chat(self, name: str, messages: Any, tools: Any, template_kwargs: Any,
                     add_generation_prompt: bool) -> list[int]:
        if template_kwargs is not None and not isinstance(template_kwargs, Mapping):
            raise wrong_type("template_kwargs", "a dict", template_kwargs)
        return self._engine.encode_chat(_json(name, _list(name, messages, "a list of messages")),
                                        _json("tools", _list("tools", tools, "a list of tools")),
                                        _json("template_kwargs", dict(template_kwargs or {})), add_generation_prompt)

    def _prompts(self, prompts: Any) -> tuple[list[list[int]], bool]:
        """Token ids of each, and whether it is one prompt rather than a list of them."""
        if isinstance(prompts, str):
            return [self.tokenize(prompts)], True
        items = _list("prompt", prompts, "a text, token ids or a list of either")
        if items and not isinstance(items[0], Iterable):
            return [items], True
        return [self.tokenize(item) if isinstance(item, str) else _list("prompt", item, "a text or token ids")
                for item in items], False

    def _run(self, prompts: list[list[int]], options: Sequence[Mapping[str, Any]]) -> list[Gathering]:
        pending = self._engine.submit([(prompt, dict(each)) for prompt, each in zip(prompts, options)])
        gatherings = [Gathering(prompt) for prompt in prompts]
        _gather(pending, gatherings)
        return gatherings


def pull(name: str, *, progress: Callable[[str, int, int], object] | None = None) -> str:
    """Fetches a model of the catalogue, or hf:OWNER/NAME, unless it is here and right, and returns its path. `progress` gets a
    phase, the bytes so far and all of them (0: not known)."""
    return _kvasir.pull(name, _progress(progress))


def _gather(pending: _kvasir.Pending, gatherings: Sequence[Gathering]) -> None:
    """Until all have finished."""
    try:
        while not pending.finished:
            for output in pending.take(wait=True):
                gatherings[output.request].add(output)
    except BaseException:
        pending.cancel()
        raise


def _prompted(texts: Any, prompt: str) -> Any:
    """With the prompt before each that is a text."""
    if isinstance(texts, str):
        return prompt + texts
    return [prompt + item if isinstance(item, str) else item for item in _list("prompt", texts, "a text, or several")]


def _path(model: Any) -> str:
    if not isinstance(model, (str, os.PathLike)):
        raise wrong_type("model", "a text or a path", model)
    return os.fsdecode(model)


def _progress(callback: Any) -> Any:
    if callback is not None and not callable(callback):
        raise wrong_type("progress", "a function or None", callback)
    return callback


def _list(name: str, value: Any, wanted: str) -> list[Any]:
    if isinstance(value, (str, bytes, bytearray, Mapping, Set)) or not isinstance(value, Iterable):
        raise wrong_type(name, wanted, value)
    return list(value)


def _each(params: Any, options: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    if params is None or isinstance(params, Mapping):
        return [{**(params or {}), **options}] * count
    each = _list("params", params, "a dict of parameters, or one for each prompt")
    if len(each) != count:
        raise usage_error(f"params: must be one, or one for each of the {count} prompts, got {len(each)}", "params")
    for i, one in enumerate(each):
        if not isinstance(one, Mapping):
            raise wrong_type(f"params[{i}]", "a dict of parameters", one)
    return [{**one, **options} for one in each]


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
    except RecursionError:
        raise usage_error(f"{name}: is nested too deeply", name) from None
    except (TypeError, ValueError) as error:
        raise usage_error(f"{name}: {error}", name) from None


def _json_default(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
