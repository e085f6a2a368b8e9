"""Floats to the blocks of a GGUF type and back, by the code that writes the files of `kvasir quantize`. It needs numpy."""
from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _kvasir
from .errors import usage_error, wrong_type

FloatArray = npt.NDArray[np.float32]
ByteArray = npt.NDArray[np.uint8]


def types() -> list[str]:
    """The types that encode() writes, by llama.cpp's names."""
    return _kvasir.quant_types()


def row_bytes(type: str, row_length: int) -> int:
    """The bytes of a row of so many numbers."""
    return _kvasir.quant_row_bytes(_name("type", type), _whole("row_length", row_length))


def encode(array: npt.ArrayLike, type: str, importance: npt.ArrayLike | None = None, *,
           threads: int | None = None) -> ByteArray:
    """Blocks of [rows, cols] numbers: bytes of [rows, row_bytes]. `importance` [cols] says what an error of each column
    counts; None: all alike, as `kvasir quantize --method rtn`. The bytes do not depend on `threads` (None: one a CPU)."""
    rows, weights = _matrix("array", array), _importance(importance)
    out = np.empty((rows.shape[0], row_bytes(type, rows.shape[1])), np.uint8)
    _kvasir.quant_encode(rows, type, weights, out.reshape(-1), _threads(threads))
    return out


def decode(data: bytes | ByteArray, type: str, shape: tuple[int, int], *, threads: int | None = None) -> FloatArray:
    """The numbers of [rows, cols] that blocks stand for."""
    if isinstance(data, np.ndarray) and data.dtype != np.uint8:
        raise usage_error(f"data: must be bytes, got {data.dtype}", "data")
    blocks = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else np.ascontiguousarray(data).reshape(-1)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise usage_error(f"shape: must be (rows, cols), got {shape!r}", "shape")
    num_rows, num_cols = (_whole("shape", size) for size in shape)
    if num_rows < 0:
        raise usage_error(f"shape: must be 0 or greater, got {num_rows}", "shape")
    if blocks.size != num_rows * row_bytes(type, num_cols):
        raise usage_error(f"data: must have {num_rows * row_bytes(type, num_cols)} bytes, got {blocks.size}", "data")
    out = np.empty((num_rows, num_cols), np.float32)
    _kvasir.quant_decode(blocks, type, out, _threads(threads))
    return out


def round_trip(array: npt.ArrayLike, type: str, importance: npt.ArrayLike | None = None, *,
               threads: int | None = None) -> FloatArray:
    """decode(encode(array)): the numbers that the file will stand for."""
    rows, weights = _matrix("array", array), _importance(importance)
    out = np.empty_like(rows)
    _kvasir.quant_round_trip(rows, _name("type", type), weights, out, _threads(threads))
    return out


@dataclasses.dataclass(frozen=True)
class Rounded:
    """Numbers on evenly spaced levels: scales * codes + minima."""

    codes: npt.NDArray[np.int16]  #: [rows, cols]
    scales: FloatArray  #: [rows, cols / group_size]
    minima: FloatArray  #: of the same shape; 0 where levels are symmetric

    @property
    def values(self) -> FloatArray:
        """[rows, cols]"""
        rows, groups = self.scales.shape
        codes = self.codes.reshape(rows, groups, -1).astype(np.float32)
        values: FloatArray = codes * self.scales[:, :, None] + self.minima[:, :, None]
        return values.reshape(self.codes.shape)


def round_to_nearest(array: npt.ArrayLike, bits: int, group_size: int, symmetric: bool) -> Rounded:
    """Rounds [rows, cols] numbers in groups along rows, 1 to 8 bits each, with a float32 scale a group. Symmetric levels
    reach the largest magnitude on both sides of 0; others reach from the least number to the largest."""
    rows = _matrix("array", array)
    size = _whole("group_size", group_size)
    if not isinstance(symmetric, (bool, np.bool_)):
        raise wrong_type("symmetric", "True or False", symmetric)
    groups = rows.shape[1] // size if size > 0 else 0
    codes = np.empty(rows.shape, np.int16)
    scales, minima = np.empty((2, rows.shape[0], groups), np.float32)
    _kvasir.quant_round_groups(rows, _whole("bits", bits), size, bool(symmetric), codes.reshape(-1), scales.reshape(-1),
                               minima.reshape(-1))
    return Rounded(codes, scales, minima)


def _matrix(name: str, array: Any) -> FloatArray:
    rows = np.asarray(array)
    if rows.ndim != 2:
        raise usage_error(f"{name}: must have 2 dimensions, got {rows.ndim}", name)
    if rows.dtype != np.float32:
        raise usage_error(f"{name}: must be float32, got {rows.dtype}", name)
    return np.ascontiguousarray(rows)


def _importance(importance: Any) -> FloatArray | None:
    if importance is None:
        return None
    weights = np.ascontiguousarray(importance, np.float32)
    if weights.ndim != 1:
        raise usage_error(f"importance: must have 1 dimension, got {weights.ndim}", "importance")
    return weights


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "a text", value)
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise wrong_type(name, "a whole number", value)
    if abs(int(value)) >= 1 << 48:
        raise usage_error(f"{name}: must be below 2^48, got {value}", name)
    return int(value)


def _threads(threads: int | None) -> int:
    if threads is None:
        return max(1, min(256, len(os.sched_getaffinity(0))))
    return _whole("threads", threads)
