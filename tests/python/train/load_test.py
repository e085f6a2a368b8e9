"""Models in torch compute what the engine computes, and export() writes what load() and `kvasir quantize` read."""
from __future__ import annotations

import json
import pathlib
import shutil

import gguf
import pytest
import torch

import kvasir
from kvasir import train
from small_llama import LLAMA, fresh_model, quantize, same_bits, windows


def test_logits_are_the_engines() -> None:
    model = fresh_model()
    with kvasir.LLM(str(LLAMA), threads=1, kv_type="f32") as llm:
        for window in windows(4, 64):
            scored = llm.score(window.tolist()).logprobs[1:]
            computed = model(window[None]).log_softmax(-1)[0, :-1].gather(1, window[1:, None]).flatten()
            assert torch.allclose(computed, torch.tensor(scored), atol=5e-3)


def test_a_folder_comes_back_as_it_went(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    train.export(model, tmp_path / "folder")
    again = train.load(tmp_path / "folder")
    assert again.config == model.config and again.texts == model.texts
    assert same_bits(model, again)


def test_the_commands_file_comes_back_with_its_texts(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    train.export(model, tmp_path / "folder")
    path = quantize(tmp_path / "folder", tmp_path / "out.gguf", "F32")
    assert same_bits(train.load(path), model)
    made, original = (gguf.GGUFReader(each) for each in (path, LLAMA))
    for one, other in zip(*(sorted(each.tensors, key=lambda tensor: str(tensor.name)) for each in (made, original)), strict=True):
        assert one.name == other.name and (one.data == other.data).all()
    text = "Two, 2 and 22 it's\n\n done"
    with kvasir.LLM(str(LLAMA), threads=1) as first, kvasir.LLM(str(path), threads=1) as second:
        assert first.tokenize(text) == second.tokenize(text)
        chat = [{"role": "user", "content": text}]
        assert first.encode_chat(chat) == second.encode_chat(chat)


def test_what_cannot_be_read_is_said(tmp_path: pathlib.Path) -> None:
    model = fresh_model()
    def message(path: pathlib.Path) -> str:
        with pytest.raises(kvasir.ModelError) as caught:
            train.load(path)
        return str(caught.value)

    assert message(tmp_path / "no") == f"{tmp_path / 'no'}: no such file or folder"
    assert message(tmp_path) == f"{tmp_path}: has no config.json"
    assert message(LLAMA.with_name("qwen2-q8_0.gguf")) == "general.architecture: must be llama, got qwen2"
    train.export(model, tmp_path / "folder")
    config = tmp_path / "folder" / "config.json"
    told = json.loads(config.read_text())
    changes: list[tuple[dict[str, object], str]] = [
        ({"vocab_size": 9}, "model.embed_tokens.weight: must be 9 x 64, got 275 x 64"),
        ({"model_type": "mistral"}, "config.json: model_type must be llama, got mistral"),
        ({"mlp_bias": True}, "config.json: mlp_bias must not be there, got True")]
    for change, wanted in changes:
        config.write_text(json.dumps({**told, **change}))
        assert wanted in message(tmp_path / "folder")
    shutil.copy(LLAMA, tmp_path / "folder" / "model.safetensors")
    config.write_text(json.dumps(told))
    assert "no safetensors file with floats" in message(tmp_path / "folder")
