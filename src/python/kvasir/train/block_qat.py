"""Block by block, weights are trained so that the rounded block gives what the exact model's block gives."""
from __future__ import annotations

import copy
import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .checkpoint import Checkpoint, fingerprint_of
from .data import batch_of
from .fake_quant import held, set_types
from .llama import Block, Llama


@dataclasses.dataclass(frozen=True)
class BlockQatOptions:
    """`type`: of the matrices' file; "": they are not rounded (recovery after pruning). `others`: as set_types() takes them.
    A step sees `batch_size` windows. `save_every`: steps between checkpoints."""

    type: str = "Q4_0"
    others: Mapping[str, str] = dataclasses.field(default_factory=dict)
    steps: int = 200
    batch_size: int = 8
    learning_rate: float = 1e-4
    seed: int = 0
    save_every: int = 50


@dataclasses.dataclass(frozen=True)
class BlockResult:
    """Errors of a block's output over the output, squared, before training and after it: over the first batches."""

    block: int
    before: float
    after: float


_NUM_SCORED_BATCHES = 4
#: Gets the block, the step and its loss, after each.
Progress = Callable[[int, int, float], object]


def train_blocks(model: Llama, windows: torch.Tensor, options: BlockQatOptions = BlockQatOptions(), *,
                 teacher: Llama | None = None, checkpoint: str | os.PathLike[str] | None = None,
                 progress: Progress | None = None) -> list[BlockResult]:
    """Trains the blocks of `model` one after the other, by Adam, on `windows` [count, length] of token ids. A block reads
    what the trained ones before it give, and is to give what `teacher` (None: the model as it is now) gives at its place,
    so it makes up for errors before it. `checkpoint`: a folder; the same call goes on where a stopped one was, and ends
    in the same bits on the same machine with the same number of threads."""
    exact = (copy.deepcopy(model) if teacher is None else teacher).requires_grad_(False)
    set_types(exact, "")
    run = _Run(options, Checkpoint(checkpoint, fingerprint_of(model, exact, windows, options)), progress)
    for number, block in enumerate(model.blocks):
        set_types(block, options.type, options.others, f"layers.{number}")
    results = []
    with torch.no_grad():
        inputs, targets = model.embed(windows), exact.embed(windows)
    for number, (block, exact_block) in enumerate(zip(model.blocks, exact.blocks)):
        through(exact_block, targets, options.batch_size)
        results.append(run.train(number, block, inputs, targets))
        with held(block):
            through(block, inputs, options.batch_size)
    return results


def relative_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Squared errors over squares, token by token, and their mean: what follows normalises each token."""
    errors = (outputs - targets).pow(2).sum(-1)
    out: torch.Tensor = (errors / targets.pow(2).sum(-1).clamp_min(1e-12)).mean()
    return out


def through(block: Block, hidden: torch.Tensor, batch_size: int) -> None:
    """Replaces a block's inputs by its outputs."""
    with torch.no_grad():
        for begin in range(0, len(hidden), batch_size):
            hidden[begin : begin + batch_size] = block(hidden[begin : begin + batch_size])


def _error_of_first(block: Block, inputs: torch.Tensor, targets: torch.Tensor, batch_size: int) -> float:
    pieces = [slice(begin, begin + batch_size) for begin in range(0, len(inputs), batch_size)][:_NUM_SCORED_BATCHES]
    with torch.no_grad(), held(block):
        errors = [float(relative_error(block(inputs[piece]), targets[piece])) for piece in pieces]
    return sum(errors) / len(errors)


class _Run:
    def __init__(self, options: BlockQatOptions, checkpoint: Checkpoint, progress: Progress | None) -> None:
        self._options, self._checkpoint, self._progress = options, checkpoint, progress

    def train(self, number: int, block: Block, inputs: torch.Tensor, targets: torch.Tensor) -> BlockResult:
        done = self._checkpoint.load(f"block-{number}")
        if done is not None:
            block.load_state_dict(done["weights"])
            return BlockResult(number, done["before"], done["after"])
        size = self._options.batch_size
        begun = self._checkpoint.load("current")
        if begun is not None and begun["block"] != number:
            begun = None
        before = _error_of_first(block, inputs, targets, size) if begun is None else begun["before"]
        self._steps(number, block, inputs, targets, before, begun)
        after = _error_of_first(block, inputs, targets, size)
        self._checkpoint.save(f"block-{number}", {"weights": block.state_dict(), "before": before, "after": after})
        self._checkpoint.remove("current")
        return BlockResult(number, before, after)

    def _steps(self, number: int, block: Block, inputs: torch.Tensor, targets: torch.Tensor, before: float,
               begun: dict[str, Any] | None) -> None:
        options = self._options
        block.requires_grad_(True)
        optimizer = torch.optim.Adam(block.parameters(), lr=options.learning_rate, betas=(0.9, 0.99))
        first = 0
        if begun is not None:
            block.load_state_dict(begun["weights"])
            optimizer.load_state_dict(begun["optimizer"])
            first = begun["step"]
        for step in range(first, options.steps):
            batch = batch_of(len(inputs), options.batch_size, options.seed, step)
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * schedule(step, options.steps)
            loss = relative_error(block(inputs[batch]), targets[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if (step + 1) % options.save_every == 0 and step + 1 < options.steps:
                self._checkpoint.save("current", {"block": number, "step": step + 1, "before": before,
                                                  "weights": block.state_dict(), "optimizer": optimizer.state_dict()})
            if self._progress is not None:
                self._progress(number, step, float(loss.detach()))


def schedule(step: int, steps: int) -> float:
    """Of the learning rate: up over the first twentieth, then down to a twentieth along a cosine."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
