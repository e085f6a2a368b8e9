"""A trained model as a folder that `kvasir quantize` takes, and whether its file has the codes that were trained."""
from __future__ import annotations

import json
import os
import pathlib

import gguf
import numpy as np

from .. import quant
from ..errors import ModelError
from . import gguf_file, safetensors_file
from .fake_quant import Linear
from .llama import Llama


def export(model: Llama, folder: str | os.PathLike[str]) -> None:
    """Writes config.json, the tokenizer's files and model.safetensors in float32: the weights that were trained, which
    `kvasir quantize FOLDER out.gguf --type T --method rtn` rounds as training did."""
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in {"config.json": json.dumps(model.config.to_json(), indent=1) + "\n", **model.texts}.items():
        (place / name).write_text(text, encoding="utf-8")
    safetensors_file.write(place / "model.safetensors", dict(model.named_parameters()))


def differing_codes(model: Llama, path: str | os.PathLike[str]) -> tuple[int, int]:
    """How many numbers of a GGUF file differ from those that the model computes with, of how many: in all matrices with a
    type. A file that was widened to F32 will do. ModelError: the file has a matrix in another type."""
    reader = gguf.GGUFReader(path)
    tensors = {gguf_file.hub_name(tensor.name): tensor for tensor in reader.tensors}
    differing = compared = 0
    for name, matrix in model.named_modules():
        if not isinstance(matrix, Linear) or not matrix.file_type:
            continue
        tensor = tensors[f"{name}.weight"]
        if tensor.tensor_type.name not in (matrix.file_type, "F32"):
            raise ModelError(f"{name}: was trained as {matrix.file_type}, and the file has {tensor.tensor_type.name}")
        trained = matrix.rounded().detach()
        if gguf_file.turns_neighbours(reader, name):
            trained = gguf_file.by_neighbours(trained, model.config.head_dim)
        data = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1)
        found = quant.decode(data, tensor.tensor_type.name, (trained.shape[0], trained.shape[1]))
        # Bits, so that a zero's sign counts.
        differing += int((found.view(np.uint32) != trained.contiguous().numpy().view(np.uint32)).sum())
        compared += found.size
    return differing, compared
