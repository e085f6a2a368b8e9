"""A model from a GGUF file or from a folder of safetensors."""
from __future__ import annotations

import json
import os
import pathlib

import torch

from ..errors import ModelError
from . import gguf_file, safetensors_file
from .llama import Llama, LlamaConfig

#: A folder's files that export() hands on.
TEXTS = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "chat_template.jinja")


def load(path: str | os.PathLike[str]) -> Llama:
    """A model with float32 weights. ModelError: no Llama model, or tensors that are not those of its shape."""
    place = pathlib.Path(path)
    if not place.exists():
        raise ModelError(f"{place}: no such file or folder")
    config, tensors, texts = _read_folder(place) if place.is_dir() else gguf_file.read(place)
    model = Llama(config, texts)
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    for name in wanted.keys() | tensors.keys():
        found = tensors[name].shape if name in tensors else None
        if found != wanted.get(name):
            raise ModelError(f"{place}: {name}: must be {_shape(wanted.get(name))}, got {_shape(found)}")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
    return model


def _read_folder(folder: pathlib.Path) -> tuple[LlamaConfig, dict[str, torch.Tensor], dict[str, str]]:
    config = folder / "config.json"
    if not config.exists():
        raise ModelError(f"{folder}: has no config.json")
    index = folder / "model.safetensors.index.json"
    files = {"model.safetensors"}
    if index.exists():
        files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    tensors: dict[str, torch.Tensor] = {}
    for name in sorted(files):
        tensors.update(safetensors_file.read(folder / name))
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in TEXTS if (folder / name).exists()}
    return LlamaConfig.of_json(json.loads(config.read_text(encoding="utf-8"))), tensors, texts


def _shape(shape: torch.Size | None) -> str:
    return "absent" if shape is None else " x ".join(map(str, shape))
