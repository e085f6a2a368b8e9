"""Weights as their file will have them, while gradients pass by."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from .. import quant
from ..errors import usage_error


class _StraightThrough(torch.autograd.Function):
    """The file's numbers forward, the gradient unchanged backward."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, type: str) -> torch.Tensor:
        return torch.from_numpy(quant.round_trip(weight.detach().numpy(), type))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


def fake_quantise(weight: torch.Tensor, type: str) -> torch.Tensor:
    """The numbers that a file of the type stands for when it is made of `weight` [rows, cols] without importance."""
    out: torch.Tensor = _StraightThrough.apply(weight, type)  # type: ignore[no-untyped-call]
    return out


class Linear(nn.Linear):
    """A matrix that computes with the numbers of its file's type, once it has one."""

    def __init__(self, num_inputs: int, num_outputs: int) -> None:
        super().__init__(num_inputs, num_outputs, bias=False)
        self.file_type = ""  #: "": the weights as they are
        self._held: torch.Tensor | None = None

    def rounded(self) -> torch.Tensor:
        """The weights that it computes with."""
        if self._held is not None:
            return self._held
        return fake_quantise(self.weight, self.file_type) if self.file_type else self.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.rounded())


@contextlib.contextmanager
def held(module: nn.Module) -> Iterator[None]:
    """Within it the weights do not change, so each matrix is rounded once."""
    matrices = [part for part in module.modules() if isinstance(part, Linear)]
    try:
        for matrix in matrices:
            matrix._held = matrix.rounded().detach()
        yield
    finally:
        for matrix in matrices:
            matrix._held = None


def set_types(module: nn.Module, type: str, others: Mapping[str, str] | None = None, prefix: str = "") -> None:
    """Gives each matrix in `module` the type of its file; "": none. `others` names those that have another, by a part of
    their names such as "down_proj" or "layers.0."; `prefix` stands before the names that `module` knows. UsageError: rows
    that the type's blocks do not divide."""
    for name, matrix in module.named_modules(prefix=prefix):
        if not isinstance(matrix, Linear):
            continue
        chosen = next((other for part, other in (others or {}).items() if part in name), type)
        if chosen:
            try:
                quant.row_bytes(chosen, matrix.in_features)
            except ValueError as error:
                raise usage_error(f"{name}: {error}", "type") from None
        matrix.file_type = chosen
