"""Weights of the blocks' matrices become zeros: by magnitude, by Wanda, or by SparseGPT, whose other weights make up for them."""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import torch

from ..errors import usage_error
from .block_qat import through
from .fake_quant import Linear, set_types
from .llama import Block, Llama
from .prune import damped

METHODS = ("magnitude", "wanda", "sparsegpt")
_COLUMNS = 128  # whose weights SparseGPT chooses among at once
#: By the first matrix that reads some inputs: all that read them.
READERS = {
    "self_attn.q_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attn.o_proj": ("self_attn.o_proj",),
    "mlp.gate_proj": ("mlp.gate_proj", "mlp.up_proj"),
    "mlp.down_proj": ("mlp.down_proj",),
}


@dataclasses.dataclass(frozen=True)
class MaskOptions:
    """`method`: one of METHODS. `pattern`: "n:m", where n of every m neighbours in a row stay, or "", where a `share` of the
    weights becomes zeros: of each matrix by magnitude, of each row by Wanda, of each 128 columns by SparseGPT."""

    method: str = "sparsegpt"
    pattern: str = ""
    share: float = 0.5
    batch_size: int = 8


@dataclasses.dataclass(frozen=True)
class MaskedBlock:
    """How many of the weights of a block's matrices are zeros."""

    block: int
    zeros: int
    weights: int


def mask_weights(model: Llama, windows: torch.Tensor, options: MaskOptions = MaskOptions(), *,
                 progress: Callable[[MaskedBlock], object] | None = None) -> tuple[Llama, list[MaskedBlock]]:
    """A copy of `model` with zeros in the matrices of its blocks. Inputs are those of `windows` [count, length] of token ids
    behind the masked blocks before; magnitude does without. The same numbers follow from the same number of threads.
    UsageError: a method or a pattern that there is not, rows that the pattern does not divide, inputs that are all zeros."""
    rule = _Rule(options)
    for name, matrix in model.blocks[0].named_modules():
        if isinstance(matrix, Linear):
            rule.check_row(name, matrix.in_features)
    masked = copy.deepcopy(model)
    set_types(masked, "")
    results = []
    with torch.no_grad():
        hidden = masked.embed(windows)
        for number, block in enumerate(masked.blocks):
            results.append(_mask_block(number, block, hidden, rule, options))
            if options.method != "magnitude":
                through(block, hidden, options.batch_size)
            if progress is not None:
                progress(results[-1])
    return masked, results


def _mask_block(number: int, block: Block, hidden: torch.Tensor, rule: _Rule, options: MaskOptions) -> MaskedBlock:
    moments: dict[str, torch.Tensor] = {}
    if options.method != "magnitude":
        moments = input_moments(block, hidden, options.batch_size, products=options.method == "sparsegpt")
    zeros = weights = 0
    for first, names in READERS.items():
        for name in names:
            matrix = block.get_submodule(name)
            assert isinstance(matrix, Linear)
            matrix.weight.copy_(rule.masked(matrix.weight, moments.get(first)))
            zeros += int((matrix.weight == 0).sum())
            weights += matrix.weight.numel()
    return MaskedBlock(number, zeros, weights)


def input_moments(block: Block, hidden: torch.Tensor, batch_size: int, *, products: bool) -> dict[str, torch.Tensor]:
    """Means over tokens, by the names of READERS: of the products of a matrix's inputs [inputs, inputs], or of their
    squares alone [inputs]."""
    sums: dict[str, torch.Tensor] = {}

    def add_to(name: str) -> Callable[[torch.nn.Module, tuple[torch.Tensor]], None]:
        def add(_: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
            rows = inputs[0].flatten(0, -2)
            found = (rows.T @ rows).double() if products else rows.double().pow(2).sum(0)
            sums[name] = sums[name] + found if name in sums else found
        return add

    hooks = [block.get_submodule(name).register_forward_pre_hook(add_to(name)) for name in READERS]
    try:
        through(block, hidden.clone(), batch_size)
    finally:
        for hook in hooks:
            hook.remove()
    for name, values in sums.items():
        values /= hidden.shape[0] * hidden.shape[1]
        if not float(values.sum()) != 0.0:
            raise usage_error(f"windows: the inputs of {name} must not be all zeros", "windows")
    return sums


class _Rule:
    """Which weights of a matrix become zeros, and what the others become."""

    def __init__(self, options: MaskOptions) -> None:
        if options.method not in METHODS:
            raise usage_error(f"method: must be one of {', '.join(METHODS)}, got {options.method}", "method")
        if not 0.0 < options.share < 1.0:
            raise usage_error(f"share: must be above 0 and below 1, got {options.share}", "share")
        self._method, self._share = options.method, options.share
        self._kept, self._of = _numbers_of(options.pattern) if options.pattern else (0, 0)

    def check_row(self, name: str, num_inputs: int) -> None:
        if self._of and num_inputs % self._of != 0:
            raise usage_error(f"pattern: {name}: rows of {num_inputs} are no multiple of {self._of}", "pattern")

    def masked(self, weight: torch.Tensor, moments: torch.Tensor | None) -> torch.Tensor:
        if self._method == "magnitude":
            return weight.masked_fill(self._removed(weight.abs(), (1, weight.numel())), 0.0)
        assert moments is not None
        if self._method == "wanda":
            return weight.masked_fill(self._removed(weight.abs() * moments.sqrt(), tuple(weight.shape)), 0.0)
        return self._compensated(weight, moments)

    def _removed(self, scores: torch.Tensor, compared: tuple[int, ...]) -> torch.Tensor:
        """The weights of the lowest scores. Those of a row of the shape `compared` meet, or those of a group of n:m."""
        if self._of:
            return lowest(scores.reshape(-1, self._of), self._of - self._kept).view(scores.shape)
        return lowest(scores.reshape(compared), round(self._share * compared[1])).view(scores.shape)

    def _compensated(self, weight: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
        """SparseGPT: column by column, what a removed weight gave goes to the columns behind it."""
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped(products)))
        factor = torch.linalg.cholesky(inverse).T
        out = weight.double()
        for begin in range(0, out.shape[1], _COLUMNS):
            part = out[:, begin : begin + _COLUMNS]
            end = begin + part.shape[1]
            errors = self._mask_columns(part, factor[begin:end, begin:end])
            out[:, end:] -= errors @ factor[begin:end, end:]
        return out.float()

    def _mask_columns(self, part: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        """Masks `part` in place; its errors, as the factor's rows take them to other columns."""
        diagonal, errors = factor.diagonal(), torch.zeros_like(part)
        removed = torch.zeros_like(part, dtype=torch.bool)
        if not self._of:
            removed = self._removed((part / diagonal).pow(2), (1, part.numel()))
        for i in range(part.shape[1]):
            if self._of and i % self._of == 0:
                group = slice(i, i + self._of)
                removed[:, group] = self._removed((part[:, group] / diagonal[group]).pow(2), ())
            errors[:, i] = torch.where(removed[:, i], part[:, i], torch.zeros_like(part[:, i])) / diagonal[i]
            part[:, i + 1 :] -= torch.outer(errors[:, i], factor[i, i + 1 :])
            part[:, i].masked_fill_(removed[:, i], 0.0)
        return errors


def lowest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """True at the `count` lowest of each row; of equal ones the first."""
    order = torch.sort(scores, dim=1, stable=True).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(1, order[:, :count], True)


def _numbers_of(pattern: str) -> tuple[int, int]:
    parts = pattern.split(":")
    if len(parts) == 2 and all(part.isdecimal() for part in parts):
        kept, of = int(parts[0]), int(parts[1])
        if 0 < kept < of <= _COLUMNS and _COLUMNS % of == 0:
            return kept, of
    raise usage_error(f"pattern: must be n:m with n below m, and m a power of two up to {_COLUMNS}, got {pattern}", "pattern")
