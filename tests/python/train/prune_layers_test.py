"""Layers go by what their removal costs."""
from __future__ import annotations

import dataclasses
import pathlib

import pytest
import torch

import kvasir
from kvasir import train
from kvasir.train.divergence import divergence
from kvasir.train.prune_layers import without_layers
from small_llama import fresh_model, quantize, same_bits, windows


def with_idle_layer() -> train.Llama:
    """The small model with a block between its two that adds nothing."""
    model = fresh_model()
    longer = train.Llama(dataclasses.replace(model.config, num_hidden_layers=3), model.texts)
    longer.load_state_dict({name: value for name, value in model.state_dict().items() if ".layers." not in name}, strict=False)
    for block, number in zip(longer.blocks, (0, 0, 1)):
        block.load_state_dict(model.blocks[number].state_dict())
    with torch.no_grad():
        longer.blocks[1].self_attn.o_proj.weight.zero_()
        longer.blocks[1].mlp.down_proj.weight.zero_()
    return longer


def test_a_layer_that_does_nothing_goes_first(tmp_path: pathlib.Path) -> None:
    pruned, removed = train.prune_layers(with_idle_layer(), windows(), 2)
    assert [each.layer for each in removed] == [1] and removed[0].divergence < 1e-6
    assert sorted(removed[0].others) == [0, 2]
    assert same_bits(pruned, fresh_model())
    train.export(pruned, tmp_path / "folder")
    assert same_bits(train.load(quantize(tmp_path / "folder", tmp_path / "out.gguf", "F32")), pruned)


def test_the_score_is_the_divergence_without_the_layer() -> None:
    model = with_idle_layer()
    pruned, removed = train.prune_layers(model, windows(10), 1, batch_size=4)
    told = {removed[0].layer: removed[0].divergence, **removed[0].others}
    with torch.no_grad():
        exact = model(windows(10)).log_softmax(-1)
        for layer, score in told.items():
            left = [number for number in range(3) if number != layer]
            assert score == pytest.approx(float(divergence(exact, without_layers(model, left)(windows(10)))), rel=1e-3, abs=1e-6)
        assert removed[1].divergence == pytest.approx(float(divergence(exact, pruned(windows(10)))), rel=1e-3)
    assert removed[1].divergence <= min(removed[1].others.values())


def test_as_many_layers_as_there_are_cannot_be_asked_for() -> None:
    with pytest.raises(kvasir.UsageError, match="num_layers: must be 1 to 1, got 2"):
        train.prune_layers(fresh_model(), windows(), 2)
