"""The safetensors container."""
from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Mapping

import numpy as np
import torch

from ..errors import ModelError

_NUMPY = {"F32": np.float32, "F16": np.float16, "F64": np.float64}


def read(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """Its tensors as float32. ModelError: types without floats, a file that ends too early."""
    data = np.memmap(path, np.uint8, "r")
    try:
        (length,) = struct.unpack("<Q", data[:8].tobytes())
        header = json.loads(data[8 : 8 + length].tobytes())
        header.pop("__metadata__", None)
        return {name: _tensor(data[8 + length :], **entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise ModelError(f"{path}: no safetensors file with floats: {error}") from None


def _tensor(data: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], dtype: str, shape: list[int],
            data_offsets: list[int]) -> torch.Tensor:
    piece = np.array(data[data_offsets[0] : data_offsets[1]])
    if dtype == "BF16":
        return torch.from_numpy((piece.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape))
    return torch.from_numpy(piece.view(_NUMPY[dtype]).astype(np.float32).reshape(shape))


def write(path: pathlib.Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes float32; the file has its name once it is whole."""
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = path.with_suffix(".part")
    with open(unfinished, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().float().contiguous().numpy().tobytes())
    unfinished.replace(path)
