"""kvasir.quant: its bytes are what the gguf package reads, its rounding is numpy's, its errors say what was wrong."""
from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest

import kvasir
from kvasir import quant

ROWS, COLS = 6, 512
FLOATS = {"F32": 24, "F16": 11, "BF16": 8}  # bits of their significands


def numbers(seed: int = 7) -> quant.FloatArray:
    values = np.random.default_rng(seed).standard_normal((ROWS, COLS)).astype(np.float32)
    values[0, :256] = 0.0  # whole blocks of zeros
    values[1, 5] = 40.0  # one number far from the others
    return values


def is_known_to_gguf(name: str) -> bool:
    """Whether the package decodes it: newer types it only names."""
    try:
        gguf.quants.dequantize(np.zeros((1, quant.row_bytes(name, COLS)), np.uint8), gguf.GGMLQuantizationType[name])
    except (KeyError, NotImplementedError):
        return False
    return True


def known_to_gguf() -> list[str]:
    return [name for name in quant.types() if name in FLOATS or is_known_to_gguf(name)]


def test_the_types_are_those_of_the_files() -> None:
    assert {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K", "IQ4_NL", "IQ2_XS", "Q2_0"} <= set(quant.types())
    assert len(known_to_gguf()) >= 24


@pytest.mark.parametrize("name", known_to_gguf())
def test_the_gguf_package_reads_the_same_numbers(name: str) -> None:
    data = quant.encode(numbers(), name)
    assert data.shape == (ROWS, quant.row_bytes(name, COLS))
    ours = quant.decode(data, name, (ROWS, COLS))
    theirs = gguf.quants.dequantize(data.view(np.float32) if name == "F32" else data.view(np.float16) if name == "F16" else data,
                                    gguf.GGMLQuantizationType[name])
    # A format's numbers are products of a few floats, which may be multiplied in another order.
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(quant.round_trip(numbers(), name), ours)


@pytest.mark.parametrize("name", quant.types())
def test_errors_are_those_of_the_bits_that_a_number_has(name: str) -> None:
    values = numbers()[2:]
    error = float(np.mean((quant.round_trip(values, name) - values) ** 2) / np.mean(values**2))
    bits = FLOATS.get(name, 8 * quant.row_bytes(name, COLS) / COLS)
    # Uniform levels lose a quarter a bit; IQ2 and IQ3 without importance lose more.
    assert error < 6.0 * 4.0**-bits + 1e-15
    assert error > 0.0 or name == "F32"


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K", "IQ3_S"])
def test_threads_do_not_show(name: str) -> None:
    one = quant.encode(numbers(), name, threads=1)
    np.testing.assert_array_equal(quant.encode(numbers(), name, threads=5), one)
    np.testing.assert_array_equal(quant.encode(numbers()[3:4], name), one[3:4])


def test_importance_moves_the_errors() -> None:
    importance = np.where(np.arange(COLS) % 32 < 8, 100.0, 1.0).astype(np.float32)
    values = numbers()[2:]
    plain, weighted = ((quant.round_trip(values, "Q4_0", each) - values) ** 2 for each in (None, importance))
    assert float((weighted * importance).sum()) < 0.9 * float((plain * importance).sum())
    assert float(weighted.sum()) > float(plain.sum())


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("group_size", [1, 3, 32, 512])
def test_groups_are_rounded_as_numpy_does_it(bits: int, group_size: int) -> None:
    values = numbers()[:, : COLS // group_size * group_size] if group_size != 3 else numbers()[:, :510]
    groups = values.reshape(ROWS, -1, group_size)
    low, high = groups.min(axis=2), groups.max(axis=2)
    most = np.float32(2**bits - 1)
    found = quant.round_to_nearest(values, bits, group_size, symmetric=False)
    scales = high / most - low / most
    steps = np.divide(groups - low[:, :, None], scales[:, :, None], out=np.zeros_like(groups), where=scales[:, :, None] > 0)
    np.testing.assert_array_equal(found.scales, scales)
    np.testing.assert_array_equal(found.minima, low)
    np.testing.assert_array_equal(found.codes, np.rint(steps.clip(0, most)).reshape(values.shape))
    assert float(np.abs(found.values - values).max()) <= 0.5001 * float(scales.max()) + 1e-6

    symmetric = quant.round_to_nearest(values, bits, group_size, symmetric=True)
    assert not symmetric.minima.any()
    if bits == 1:
        np.testing.assert_allclose(symmetric.scales, np.abs(groups).mean(axis=2), rtol=1e-6)
        np.testing.assert_array_equal(symmetric.codes, np.where(values < 0, -1, 1))
        return
    outermost = np.float32(2 ** (bits - 1) - 1)
    scales = np.abs(groups).max(axis=2) / outermost
    steps = np.divide(groups, scales[:, :, None], out=np.zeros_like(groups), where=scales[:, :, None] > 0)
    np.testing.assert_array_equal(symmetric.scales, scales)
    np.testing.assert_array_equal(symmetric.codes, np.rint(steps.clip(-outermost, outermost)).reshape(values.shape))


def test_smaller_groups_and_more_bits_lose_less() -> None:
    values = numbers()

    def loss(bits: int, group_size: int) -> float:
        return float(((quant.round_to_nearest(values, bits, group_size, False).values - values) ** 2).sum())

    assert loss(4, 32) < loss(4, 128) < loss(4, 512)
    assert loss(8, 64) < loss(5, 64) < loss(2, 64)


WRONG: list[tuple[str, Any, str]] = [
    ("type", lambda: quant.encode(numbers(), "Q4_00"), "Q4_00: there is no such type; did you mean Q4_0?"),
    ("rows", lambda: quant.encode(numbers()[:, :500], "Q4_0"), "array: rows of Q4_0 must be a multiple of 32 long, got 500"),
    ("rank", lambda: quant.encode(numbers()[0], "Q4_0"), "array: must have 2 dimensions, got 1"),
    ("dtype", lambda: quant.encode(numbers().astype(np.float64), "Q4_0"), "array: must be float32, got float64"),
    ("nan", lambda: quant.encode(np.full((1, 32), np.nan, np.float32), "Q4_0"), "array: must be finite, element 0 is nan"),
    ("few", lambda: quant.encode(numbers(), "Q4_0", np.ones(3)), "importance: must have 512 elements, got 3"),
    ("minus", lambda: quant.encode(numbers(), "Q4_0", -np.ones(COLS)), "importance: must be 0 or greater, got -1"),
    ("bytes", lambda: quant.decode(b"12", "Q4_0", (1, 32)), "data: must have 18 bytes, got 2"),
    ("shape", lambda: quant.decode(b"12", "Q4_0", (32,)), "shape: must be (rows, cols), got (32,)"),  # type: ignore[arg-type]
    ("bits", lambda: quant.round_to_nearest(numbers(), 9, 32, True), "bits: must be 1 to 8, got 9"),
    ("group", lambda: quant.round_to_nearest(numbers(), 4, 100, True), "group_size: must divide rows of 512, got 100"),
    ("zero", lambda: quant.round_to_nearest(numbers(), 4, 0, True), "group_size: must divide rows of 512, got 0"),
    ("threads", lambda: quant.encode(numbers(), "Q4_0", threads=0), "threads: must be 1 to 256, got 0"),
]


@pytest.mark.parametrize("call,message", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_is_said_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(kvasir.UsageError) as caught:
        call()
    assert str(caught.value) == message
