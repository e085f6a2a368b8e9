"""KL of a model's next-token probabilities from its teacher's."""
from __future__ import annotations

from typing import Any

import torch

#: Tokens whose logits stand in memory at once.
_NUM_ROWS = 128


def divergence(teacher_logprobs: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """KL a token, in nats, of [windows, length, vocab_size]."""
    return torch.nn.functional.kl_div(logits.log_softmax(-1).flatten(0, 1), teacher_logprobs.flatten(0, 1),
                                      reduction="batchmean", log_target=True)


def divergence_of_heads(teacher_hidden: torch.Tensor, teacher_matrix: torch.Tensor, hidden: torch.Tensor,
                        matrix: torch.Tensor) -> torch.Tensor:
    """divergence() of `hidden @ matrix.T` from the teacher's, a few rows of logits at a time, so it needs less memory and
    time. `hidden`: [tokens, hidden_size], normalised; `matrix`: [vocab_size, hidden_size]. Gradients go to `hidden` and `matrix`."""
    out: torch.Tensor = _DivergenceOfHeads.apply(hidden, matrix, teacher_hidden, teacher_matrix)  # type: ignore[no-untyped-call]
    return out


class _DivergenceOfHeads(torch.autograd.Function):
    """The gradient of a row of logits is the difference of both probabilities, so it is taken while the logits are there."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, matrix: torch.Tensor, teacher_hidden: torch.Tensor,
                teacher_matrix: torch.Tensor) -> torch.Tensor:
        of_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        of_matrix = torch.zeros_like(matrix) if ctx.needs_input_grad[1] else None
        total, count = 0.0, len(hidden)
        for begin in range(0, count, _NUM_ROWS):
            rows = slice(begin, begin + _NUM_ROWS)
            told = (teacher_hidden[rows] @ teacher_matrix.T).log_softmax(-1)
            said = (hidden[rows] @ matrix.T).log_softmax(-1)
            probabilities = told.exp()
            total += float(torch.dot(probabilities.view(-1), told.sub_(said).view(-1)))
            gradient = said.exp_().sub_(probabilities).div_(count)
            if of_hidden is not None:
                of_hidden[rows] = gradient @ matrix
            if of_matrix is not None:
                of_matrix.addmm_(gradient.T, hidden[rows])
        ctx.save_for_backward(of_hidden, of_matrix)
        return hidden.new_tensor(total / count)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return *(None if part is None else part * gradients[0] for part in ctx.saved_tensors), None, None
