"""Neurons of the feed-forward networks are removed; what is left makes up for them."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from ..errors import usage_error
from .fake_quant import Linear
from .llama import Block, Llama, Mlp

#: Neurons are removed in steps of so many, so that rows keep the length of the files' blocks.
STEP = 32
_DAMPING = 0.01  # of the mean square of inputs


@dataclasses.dataclass(frozen=True)
class PrunedBlock:
    """`error`: of down_proj's output over the output, squared, after compensation; `uncompensated`: without it."""

    block: int
    kept: list[int]
    error: float
    uncompensated: float


def prune_neurons(model: Llama, windows: torch.Tensor, num_neurons: int, *, batch_size: int = 8,
                  progress: Callable[[PrunedBlock], object] | None = None) -> tuple[Llama, list[PrunedBlock]]:
    """A copy of `model` with `num_neurons` in each block. Those are removed whose loss is least when down_proj's other columns
    are fitted to its old output by least squares, over `windows` [count, length] of token ids; inputs are those of the pruned
    blocks before. UsageError: a count that is no multiple of 32, or not below the model's."""
    most = model.config.intermediate_size
    if not 0 < num_neurons < most or num_neurons % STEP != 0:
        raise usage_error(f"num_neurons: must be a multiple of {STEP} from {STEP} to {most - 1}, got {num_neurons}", "num_neurons")
    pruned = Llama(dataclasses.replace(model.config, intermediate_size=num_neurons), model.texts)
    results = []
    with torch.no_grad():
        pruned.load_state_dict({name: value for name, value in model.state_dict().items() if ".mlp." not in name}, strict=False)
        hidden = model.embed(windows)
        for number, (block, smaller) in enumerate(zip(model.blocks, pruned.blocks)):
            results.append(_prune_block(number, block, smaller, hidden, batch_size))
            for begin in range(0, len(hidden), batch_size):
                hidden[begin : begin + batch_size] = smaller(hidden[begin : begin + batch_size])
            if progress is not None:
                progress(results[-1])
    return pruned, results


def _prune_block(number: int, block: Block, smaller: Block, hidden: torch.Tensor, batch_size: int) -> PrunedBlock:
    products = torch.zeros(block.config.intermediate_size, block.config.intermediate_size, dtype=torch.float64)
    for begin in range(0, len(hidden), batch_size):
        inputs = block.post_attention_layernorm(block.attended(hidden[begin : begin + batch_size]))
        neurons = block.mlp.neurons(inputs).flatten(0, 1)
        products += (neurons.T @ neurons).double()
    down = block.mlp.down_proj.weight.double()
    kept = kept_neurons(down, products, smaller.config.intermediate_size)
    fitted = compensated(down, products, kept)
    _copy(block.mlp, smaller.mlp, kept)
    smaller.mlp.down_proj.weight.copy_(fitted.float())
    output = float(_quadratic(down, products))
    wide = torch.zeros_like(down)
    wide[:, kept] = fitted
    cut = torch.zeros_like(down)
    cut[:, kept] = down[:, kept]
    return PrunedBlock(number, kept.tolist(), float(_quadratic(down - wide, products)) / output,
                       float(_quadratic(down - cut, products)) / output)


def _copy(source: Mlp, target: Mlp, kept: torch.Tensor) -> None:
    for name in ("gate_proj", "up_proj"):
        rows, into = getattr(source, name), getattr(target, name)
        assert isinstance(rows, Linear) and isinstance(into, Linear)
        into.weight.copy_(rows.weight[kept])


def _quadratic(matrix: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
    return ((matrix @ products) * matrix).sum()


def damped(products: torch.Tensor) -> torch.Tensor:
    """The products with a hundredth of the inputs' mean square on the diagonal, so that an inverse exists."""
    diagonal = products.diagonal()
    return products + torch.diag(torch.full_like(diagonal, float(diagonal.mean()) * _DAMPING + 1e-30))


def kept_neurons(down: torch.Tensor, products: torch.Tensor, count: int) -> torch.Tensor:
    """The indices of `count` neurons, ascending. A neuron's loss is its column's square over its diagonal element of the
    products' inverse; the inverse follows each removal."""
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped(products)))
    columns = down.clone()
    diagonal = inverse.diagonal().clone()
    open_ones = torch.ones(down.shape[1], dtype=torch.bool)
    # What removals since the last update take off the inverse: its rows are only made where they are needed.
    taken = torch.zeros(down.shape[1], 0, dtype=torch.float64)
    for _ in range(down.shape[1] - count):
        losses = columns.pow(2).sum(0) / diagonal.clamp_min(1e-300)
        losses[~open_ones] = torch.inf
        worst = int(losses.argmin())
        row = inverse[worst] - taken @ taken[worst]
        columns -= torch.outer(columns[:, worst] / row[worst], row)
        taken = torch.cat([taken, (row / row[worst].sqrt())[:, None]], dim=1)
        diagonal -= taken[:, -1].pow(2)
        open_ones[worst] = False
        if taken.shape[1] == STEP:
            inverse -= taken @ taken.T
            taken = taken[:, :0]
    return open_ones.nonzero().flatten()


def compensated(down: torch.Tensor, products: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """The columns of the kept neurons that come nearest to the old output: [outputs, kept]."""
    rows = damped(products)[kept]
    return torch.linalg.solve(rows[:, kept], rows @ down.T).T
