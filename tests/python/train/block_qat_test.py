"""Block-wise QAT: errors fall, its file has the codes that were trained, a stopped run ends in the same bits."""
from __future__ import annotations

import dataclasses
import pathlib

import pytest
import torch

import kvasir
from kvasir import train
from kvasir.train.divergence import divergence
from small_llama import StopAfter, Stopped, fresh_model, quantize, same_bits, windows

OPTIONS = train.BlockQatOptions(type="Q4_0", steps=40, learning_rate=1e-3, save_every=7)


def distance(model: train.Llama) -> float:
    with torch.no_grad():
        exact = fresh_model()(windows()).log_softmax(-1)
        return float(divergence(exact, model(windows())))


@pytest.mark.parametrize("type", ["Q4_0", "Q4_1", "Q2_0"])
def test_training_brings_the_rounded_model_nearer(type: str) -> None:
    nearest, trained = fresh_model(), fresh_model()
    train.set_types(nearest, type)
    results = train.train_blocks(trained, windows(), dataclasses.replace(OPTIONS, type=type))
    assert all(result.after < result.before for result in results)
    assert distance(trained) < 0.8 * distance(nearest)


def test_the_forward_pass_is_the_files_and_gradients_pass_by() -> None:
    weight = torch.randn(3, 64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    rounded = train.fake_quantise(weight, "Q4_0")
    assert torch.equal(rounded, torch.from_numpy(kvasir.quant.round_trip(weight.detach().numpy(), "Q4_0")))
    (rounded * torch.arange(64.0)).sum().backward()
    assert weight.grad is not None and torch.equal(weight.grad, torch.arange(64.0).expand(3, 64))


@pytest.mark.parametrize("type", ["Q4_0", "Q5_1", "IQ4_NL"])
def test_quantising_changes_no_code(tmp_path: pathlib.Path, type: str) -> None:
    model = fresh_model()
    train.train_blocks(model, windows(), dataclasses.replace(OPTIONS, type=type, steps=10))
    train.export(model, tmp_path / "folder")
    # The recipes' types of other matrices than the trained ones differ.
    path = quantize(tmp_path / "folder", tmp_path / "out.gguf", "Q4_0", "--keep", f"blk.*(attn|ffn).*={type}", "--method", "rtn")
    differing, compared = train.differing_codes(model, path)
    assert (differing, compared) == (0, 2 * (64 * 64 * 5 + 2 * 32 * 64))
    with torch.no_grad():
        next(model.blocks[0].mlp.parameters())[0, 0] += 1.0
    assert train.differing_codes(model, path)[0] > 0


def test_another_type_than_the_trained_one_is_an_error(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    train.set_types(model, "Q4_0")
    train.export(model, tmp_path / "folder")
    path = quantize(tmp_path / "folder", tmp_path / "out.gguf", "Q8_0")
    with pytest.raises(kvasir.ModelError, match="was trained as Q4_0, and the file has Q8_0"):
        train.differing_codes(model, path)
    with pytest.raises(kvasir.UsageError, match="q_proj: array: rows of Q4_K must be a multiple of 256 long, got 64"):
        train.set_types(model, "Q4_K")


def test_a_stopped_run_ends_in_the_same_bits(tmp_path: pathlib.Path) -> None:
    whole = fresh_model()
    results = train.train_blocks(whole, windows(), OPTIONS)
    stop = StopAfter(3, 20, 55)
    for _ in range(3):
        with pytest.raises(Stopped):
            train.train_blocks(fresh_model(), windows(), OPTIONS, checkpoint=tmp_path, progress=stop)
    parts = fresh_model()
    assert train.train_blocks(parts, windows(), OPTIONS, checkpoint=tmp_path, progress=stop) == results
    assert same_bits(whole, parts)
    with pytest.raises(kvasir.ModelError, match="belongs to a run of another model, other windows or other options"):
        train.train_blocks(fresh_model(), windows(), dataclasses.replace(OPTIONS, seed=2), checkpoint=tmp_path)
