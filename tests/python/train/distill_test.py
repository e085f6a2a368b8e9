"""Distillation and pruning."""
from __future__ import annotations

import pathlib

import pytest
import torch

import kvasir
from kvasir import train
from kvasir.train.prune import compensated, kept_neurons
from small_llama import StopAfter, Stopped, fresh_model, quantize, same_bits, windows

OPTIONS = train.DistillOptions(steps=60, batch_size=8, learning_rate=3e-3, save_every=10)


def student(teacher: train.Llama) -> train.Llama:
    return train.student_of(teacher, hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=2)


def test_the_student_comes_nearer_to_its_teacher_and_loads(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    small = student(model)
    losses = train.Distiller(model, small, windows(), OPTIONS).run()
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    train.export(small, tmp_path / "folder")
    path = quantize(tmp_path / "folder", tmp_path / "out.gguf", "F32")
    window = windows(1, 16)
    with kvasir.LLM(str(path), threads=1, kv_type="f32") as llm, torch.no_grad():
        said = llm.generate(window[0].tolist(), temperature=0, max_tokens=1, ignore_eos=True).token_ids
    assert said == [int(small(window)[0, -1].argmax())]


def test_a_stopped_run_ends_in_the_same_bits(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    whole = student(model)
    losses = train.Distiller(model, whole, windows(), OPTIONS).run()
    for steps in (13, 22):
        with pytest.raises(Stopped):
            train.Distiller(model, student(model), windows(), OPTIONS, checkpoint=tmp_path).run(StopAfter(steps))
    parts = student(model)
    assert train.Distiller(model, parts, windows(), OPTIONS, checkpoint=tmp_path).run() == losses
    assert same_bits(whole, parts)


def test_what_is_frozen_stays_as_it_is() -> None:
    model = fresh_model()
    small = student(model)
    before = {name: value.clone() for name, value in small.state_dict().items()}
    train.Distiller(model, small, windows(), train.DistillOptions(steps=8, frozen=("embed_tokens", "layers.0.mlp"))).run()
    for name, value in small.state_dict().items():
        is_frozen = "embed_tokens" in name or "layers.0.mlp" in name
        assert bool((value == before[name]).all()) is is_frozen, name
    with pytest.raises(kvasir.UsageError, match="frozen: must leave something to train, got model"):
        train.Distiller(model, student(model), windows(), train.DistillOptions(frozen=("model",)))


def test_a_teacher_that_reads_before_says_what_it_says_meanwhile() -> None:
    model = fresh_model()
    once, twice = student(model), student(model)
    count = len(windows())
    first = train.Distiller(model, once, windows(), train.DistillOptions(steps=count // 8, batch_size=8)).run()
    second = train.Distiller(model, twice, windows(), train.DistillOptions(steps=count // 8 + 1, batch_size=8)).run()
    assert second[0] == pytest.approx(first[0], rel=1e-5)


def test_another_tokenizer_is_an_error() -> None:
    model = fresh_model()
    other = student(model)
    other.texts["tokenizer.json"] = "{}"
    with pytest.raises(kvasir.UsageError, match="student: must have the teacher's tokenizer, got another"):
        train.Distiller(model, other, windows())


def test_neurons_that_others_replace_are_removed_first() -> None:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(400, 6, generator=generator, dtype=torch.float64)
    inputs[:, 4] = inputs[:, 1] - 2.0 * inputs[:, 0]  # says nothing new
    down = torch.randn(8, 6, generator=generator, dtype=torch.float64) + 2.0
    products = inputs.T @ inputs
    kept = kept_neurons(down, products, 5)
    assert set(range(6)) - set(kept.tolist()) <= {0, 1, 4}
    fitted = compensated(down, products, kept)
    lost = ((inputs @ down.T - inputs[:, kept] @ fitted.T) ** 2).sum() / ((inputs @ down.T) ** 2).sum()
    assert float(lost) < 1e-3
    direct = torch.linalg.lstsq(inputs[:, kept], inputs @ down.T).solution
    assert torch.allclose(inputs[:, kept] @ direct, inputs[:, kept] @ fitted.T, atol=0.1)


def test_removals_are_those_of_the_inverse_of_what_is_left() -> None:
    generator = torch.Generator().manual_seed(6)
    inputs = torch.randn(900, 96, generator=generator, dtype=torch.float64) @ torch.randn(96, 96, generator=generator, dtype=torch.float64)
    down = torch.randn(8, 96, generator=generator, dtype=torch.float64)
    products = inputs.T @ inputs
    left = list(range(96))
    damped = products + torch.eye(96, dtype=torch.float64) * float(products.diagonal().mean()) * 0.01
    for _ in range(70):
        columns = compensated(down, products, torch.tensor(left))
        losses = columns.pow(2).sum(0) / torch.linalg.inv(damped[left][:, left]).diagonal()
        left.pop(int(losses.argmin()))
    assert kept_neurons(down, products, 26).tolist() == left


def test_a_pruned_model_is_a_smaller_file_and_recovers(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    pruned, results = train.prune_neurons(model, windows(), 32)
    assert all(result.error < result.uncompensated for result in results)
    assert all(len(result.kept) == 32 for result in results)
    recovered = train.train_blocks(pruned, windows(), train.BlockQatOptions(type="", steps=40, learning_rate=1e-3), teacher=fresh_model())
    assert all(result.after < 0.9 * result.before for result in recovered)
    train.export(pruned, tmp_path / "folder")
    path = quantize(tmp_path / "folder", tmp_path / "out.gguf", "Q8_0")
    assert train.load(path).config.intermediate_size == 32
    with pytest.raises(kvasir.UsageError, match="num_neurons: must be a multiple of 32 from 32 to 63, got 48"):
        train.prune_neurons(model, windows(), 48)
