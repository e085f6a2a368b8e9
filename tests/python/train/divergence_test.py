"""The loss of distillation."""
from __future__ import annotations

import pytest
import torch

from kvasir.train.divergence import divergence, divergence_of_heads


@pytest.mark.parametrize("is_frozen", [False, True])
def test_rows_a_few_at_a_time_give_the_loss_and_gradients_of_all(is_frozen: bool) -> None:
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    told, teacher, hidden, matrix = drawn(300, 24), drawn(90, 24), drawn(300, 16), drawn(90, 16)
    grads, losses = [], []
    for whole in (True, False):
        x, m = hidden.clone().requires_grad_(), matrix.clone().requires_grad_(not is_frozen)
        if whole:
            loss = divergence((told @ teacher.T).log_softmax(-1)[None], (x @ m.T)[None])
        else:
            loss = divergence_of_heads(told, teacher, x, m)
        (3.0 * loss).backward()  # type: ignore[no-untyped-call]
        losses.append(float(loss.detach()))
        grads.append((x.grad, m.grad))
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)
    for first, second in zip(*grads):
        assert (first is None) == (second is None)
        assert first is None or torch.allclose(first, second, rtol=1e-9, atol=1e-12)
    assert (grads[0][1] is None) == is_frozen
