"""Windows of token ids to train on: cut from a text, or written by the model itself."""
from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from ..errors import usage_error
from ..llm import LLM
from ..parameters import SamplingParams

#: Beginnings of the texts that a model writes: after nothing, and as answers in a chat.
CHAT_OPENINGS = (
    "Tell me about a place that you find interesting.", "How does a bicycle stay upright?", "Write a short story.",
    "Explain what a computer program is.", "Give me three tips for cooking rice.", "What happened in the 19th century?",
    "Write a poem about the sea.", "Solve: 12 apples are shared by 4 children.", "Why is the sky blue?",
    "Write a function that sorts a list.", "Describe how a bill becomes a law.", "Summarise a famous novel.",
)


def windows_of(token_ids: Sequence[int] | npt.NDArray[np.int64], length: int) -> torch.Tensor:
    """[windows, length] of consecutive tokens; what is left over at the end is not used. UsageError: too few tokens."""
    ids = torch.as_tensor(np.asarray(token_ids, dtype=np.int64))
    count = ids.numel() // length
    if count == 0:
        raise usage_error(f"token_ids: must have at least {length} tokens for a window, got {ids.numel()}", "token_ids")
    return ids[: count * length].reshape(count, length)


def windows_of_text(llm: LLM, path: str | pathlib.Path, length: int) -> torch.Tensor:
    """windows_of() the tokens of a text file."""
    return windows_of(llm.tokenize(pathlib.Path(path).read_text(encoding="utf-8")), length)


def own_windows(llm: LLM, count: int, length: int, seed: int = 0, *, bos: int = 0, at_once: int = 32,
                progress: Callable[[int], object] | None = None) -> torch.Tensor:
    """[count, length] tokens that the model writes at temperature 1: half begin with the token `bos`, half are chats. Texts
    stand one behind the other, so a window may begin within one. The same seed gives the same tokens."""
    ids: list[int] = []
    first = 0
    while len(ids) < count * length:
        prompts: list[Sequence[int]] = []
        for i in range(first, first + at_once):
            opening = CHAT_OPENINGS[i // 2 % len(CHAT_OPENINGS)]
            prompts.append([bos] if i % 2 == 0 else llm.encode_chat([{"role": "user", "content": opening}]))
        each = [SamplingParams(seed=seed * 1_000_003 + i, temperature=1.0, max_tokens=length)
                for i in range(first, first + at_once)]
        for answer in llm.generate(prompts, each):
            ids += [*answer.prompt_token_ids, *answer.token_ids]
        first += at_once
        if progress is not None:
            progress(len(ids))
    return windows_of(ids, length)[:count]


def batch_of(num_windows: int, batch_size: int, seed: int, step: int) -> torch.Tensor:
    """The windows of a step: each once an epoch, in an order that follows from the seed alone, so that a run that goes on
    meets what it would have met."""
    if not 1 <= batch_size <= num_windows:
        raise usage_error(f"batch_size: must be 1 to {num_windows}, the number of windows, got {batch_size}", "batch_size")
    steps_an_epoch = num_windows // batch_size
    epoch, at = divmod(step, steps_an_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(num_windows)
    return torch.from_numpy(order[at * batch_size : (at + 1) * batch_size])
