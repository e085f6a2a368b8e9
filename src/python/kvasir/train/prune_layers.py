"""Whole blocks are removed: those without which the model's predictions change least."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from ..errors import usage_error
from .divergence import divergence
from .llama import Block, Llama


@dataclasses.dataclass(frozen=True)
class RemovedLayer:
    """`divergence`: KL of the next-token probabilities to the model's, without this block and those removed before it.
    `others`: the same without another block in its place, by the numbers of the blocks."""

    layer: int
    divergence: float
    others: dict[int, float]


def prune_layers(model: Llama, windows: torch.Tensor, num_layers: int, *, batch_size: int = 4,
                 progress: Callable[[RemovedLayer], object] | None = None) -> tuple[Llama, list[RemovedLayer]]:
    """A copy of `model` with `num_layers` blocks. One goes after the other: each time the one without which KL to the
    model's own predictions is least, over `windows` [count, length] of token ids; of equal ones the first. UsageError: a count
    that is not below the model's."""
    most = model.config.num_hidden_layers
    if not 0 < num_layers < most:
        raise usage_error(f"num_layers: must be 1 to {most - 1}, got {num_layers}", "num_layers")
    left, removed = list(range(most)), []
    while len(left) > num_layers:
        losses = dict(zip(left, _losses_of_removals(model, left, windows, batch_size)))
        layer = min(left, key=lambda each: losses[each])
        left.remove(layer)
        removed.append(RemovedLayer(layer, losses.pop(layer), losses))
        if progress is not None:
            progress(removed[-1])
    return without_layers(model, left), removed


def without_layers(model: Llama, left: list[int]) -> Llama:
    """A copy with the blocks of these numbers alone."""
    pruned = Llama(dataclasses.replace(model.config, num_hidden_layers=len(left)), model.texts)
    pruned.load_state_dict({name: value for name, value in model.state_dict().items() if ".layers." not in name}, strict=False)
    for block, number in zip(pruned.blocks, left, strict=True):
        block.load_state_dict(model.blocks[number].state_dict())
    return pruned


def _losses_of_removals(model: Llama, left: list[int], windows: torch.Tensor, batch_size: int) -> list[float]:
    """KL to the whole model without each of the blocks in `left`, of which the others are already gone."""
    blocks = [model.blocks[number] for number in left]
    losses = [0.0] * len(left)
    with torch.no_grad():
        for begin in range(0, len(windows), batch_size):
            batch = windows[begin : begin + batch_size]
            exact = model(batch).log_softmax(-1)
            hidden = model.embed(batch)
            for at, block in enumerate(blocks):
                logits = model.head(_through_all(blocks[at + 1 :], hidden))
                losses[at] += float(divergence(exact, logits)) * len(batch) / len(windows)
                hidden = block(hidden)
    return losses


def _through_all(blocks: list[Block], hidden: torch.Tensor) -> torch.Tensor:
    for block in blocks:
        hidden = block(hidden)
    return hidden
