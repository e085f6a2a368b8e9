"""Masks: as many zeros as were asked for, SparseGPT's numbers, and which files keep zeros."""
from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch

import kvasir
from kvasir import train
from kvasir.train.fake_quant import Linear
from kvasir.train.masks import METHODS, MaskOptions, _Rule, input_moments
from kvasir.train.prune import damped
from small_llama import fresh_model, quantize, same_bits, windows

PATTERNS = [("", 0.5), ("", 0.3), ("4:8", 0.5), ("2:4", 0.5), ("1:4", 0.5)]


def matrices(model: train.Llama) -> dict[str, torch.Tensor]:
    return {name: part.weight for name, part in model.named_modules() if isinstance(part, Linear)}


def correlated(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix, and the mean products of inputs that resemble each other and differ in size."""
    generator = torch.Generator().manual_seed(columns)
    inputs = torch.randn(4 * columns, columns, generator=generator, dtype=torch.float64)
    inputs = inputs @ torch.randn(columns, columns, generator=generator, dtype=torch.float64)
    inputs *= torch.rand(columns, generator=generator, dtype=torch.float64) * 3
    return torch.randn(rows, columns, generator=generator), inputs.T @ inputs / len(inputs)


def textbook_sparse_gpt(weight: torch.Tensor, products: torch.Tensor, share: float, kept: int, of: int) -> torch.Tensor:
    """Optimal brain surgery along the columns, from the inverse of what is still open at each of them. kept: of every `of`;
    0: a share of the weights of 128 columns."""
    rows, columns = weight.shape
    open_products = damped(products).numpy()
    inverses = [np.linalg.inv(open_products[j:, j:]) for j in range(columns)]
    w = weight.double().numpy().copy()
    goes = np.zeros_like(w, dtype=bool)
    for j in range(columns):
        width = min(of or 128, columns - j)
        if j % (of or 128) == 0:
            scores = np.stack([w[:, c] ** 2 / inverses[c][0, 0] for c in range(j, j + width)], axis=1)
            sets = scores if of else scores.reshape(1, -1)
            count = of - kept if of else round(share * scores.size)
            chosen = np.zeros_like(sets, dtype=bool)
            for row, those in enumerate(np.argsort(sets, axis=1)[:, :count]):
                chosen[row, those] = True
            goes[:, j : j + width] = chosen.reshape(rows, width)
        for row in np.flatnonzero(goes[:, j]):
            w[row, j:] -= w[row, j] / inverses[j][0, 0] * inverses[j][0]
            w[row, j] = 0.0
    return torch.from_numpy(w)


@pytest.mark.parametrize(("pattern", "kept", "of"), [("", 0, 0), ("2:4", 2, 4), ("4:8", 4, 8), ("3:4", 3, 4)])
def test_sparse_gpt_is_the_textbooks(pattern: str, kept: int, of: int) -> None:
    weight, products = correlated(24, 160)
    found = _Rule(MaskOptions("sparsegpt", pattern, 0.4)).masked(weight, products)
    wanted = textbook_sparse_gpt(weight, products, 0.4, kept, of)
    assert torch.equal(found == 0, wanted == 0)
    assert torch.allclose(found.double(), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("pattern", "share"), PATTERNS)
def test_rules_that_know_more_of_the_inputs_lose_less(pattern: str, share: float) -> None:
    weight, products = correlated(48, 256)
    errors = []
    for method in METHODS:
        moments = products if method == "sparsegpt" else products.diagonal()
        lost = (weight - _Rule(MaskOptions(method, pattern, share)).masked(weight, moments)).double()
        errors.append(float(((lost @ products) * lost).sum()))
    assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("pattern", "share"), PATTERNS)
def test_as_many_zeros_as_were_asked_for(method: str, pattern: str, share: float) -> None:
    model = fresh_model()
    options = MaskOptions(method, pattern, share)
    masked, results = train.mask_weights(model, windows(), options)
    assert same_bits(model, fresh_model())
    assert same_bits(masked, train.mask_weights(model, windows(), options)[0])
    assert torch.equal(masked.model.embed_tokens.weight, model.model.embed_tokens.weight)
    numbers = [int(part) for part in pattern.split(":")] if pattern else []
    for weight in matrices(masked).values():
        if numbers:
            assert bool(((weight.reshape(-1, numbers[1]) == 0).sum(1) == numbers[1] - numbers[0]).all())
        elif method == "wanda":
            assert bool(((weight == 0).sum(1) == round(share * weight.shape[1])).all())
        else:
            assert int((weight == 0).sum()) == round(share * weight.numel())
    assert sum(result.zeros for result in results) == sum(int((weight == 0).sum()) for weight in matrices(masked).values())
    assert sum(result.weights for result in results) == 2 * (64 * 64 * 5 + 2 * 32 * 64)


def test_moments_are_those_of_the_matrices_inputs() -> None:
    block, hidden = fresh_model().blocks[0], fresh_model().embed(windows()).detach()
    with torch.no_grad():
        products = input_moments(block, hidden, 7, products=True)
        squares = input_moments(block, hidden, 48, products=False)
        neurons = block.mlp.neurons(block.post_attention_layernorm(block.attended(hidden))).flatten(0, 1).double()
    assert torch.allclose(products["mlp.down_proj"], neurons.T @ neurons / len(neurons), rtol=1e-4, atol=1e-6)
    for name, values in products.items():
        assert torch.allclose(values.diagonal(), squares[name], rtol=1e-4, atol=1e-9)


#: Whose nearest codes of a zero stand for zero. In the others a minimum moves it, or their numbers have no zero.
KEEP = {"F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_0", "Q4_0", "Q3_K", "Q2_0", "TQ2_0", "TQ1_0", "MXFP4", "NVFP4"}


@pytest.mark.parametrize("type", kvasir.quant.types())
def test_zeros_in_a_file_of_the_type(type: str) -> None:
    weight = _Rule(MaskOptions("magnitude", "2:4")).masked(correlated(16, 256)[0], None)
    values = torch.from_numpy(kvasir.quant.round_trip(weight.numpy(), type))
    assert bool((values[weight == 0] == 0).all()) == (type in KEEP)


def test_the_commands_file_keeps_the_zeros(tmp_path: pathlib.Path) -> None:
    masked, _ = train.mask_weights(fresh_model(), windows(), MaskOptions("wanda", "2:4"))
    train.export(masked, tmp_path / "folder")
    for type in ("F32", "Q8_0", "Q4_0"):
        read = matrices(train.load(quantize(tmp_path / "folder", tmp_path / f"{type}.gguf", type, "--method", "rtn")))
        assert all(bool((read[name][weight == 0] == 0).all()) for name, weight in matrices(masked).items())


def test_what_cannot_be_masked_is_said() -> None:
    wrong = {
        "method: must be one of magnitude, wanda, sparsegpt, got obs": MaskOptions("obs"),
        "share: must be above 0 and below 1, got 1.0": MaskOptions(share=1.0),
        "pattern: must be n:m with n below m, and m a power of two up to 128, got 4:4": MaskOptions(pattern="4:4"),
        "pattern: must be n:m with n below m, and m a power of two up to 128, got 2:6": MaskOptions(pattern="2:6"),
        "pattern: self_attn.q_proj: rows of 64 are no multiple of 128": MaskOptions(pattern="64:128"),
    }
    for message, options in wrong.items():
        with pytest.raises(kvasir.UsageError) as caught:
            train.mask_weights(fresh_model(), windows(), options)
        assert message in str(caught.value)
    dead = fresh_model()
    with torch.no_grad():
        dead.blocks[1].mlp.up_proj.weight.zero_()
    with pytest.raises(kvasir.UsageError, match="the inputs of mlp.down_proj must not be all zeros"):
        train.mask_weights(dead, windows())
