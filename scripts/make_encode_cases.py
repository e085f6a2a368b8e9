#!/usr/bin/env python3
"""Writes tests/cases/encode: rows of floats (values.f32) and the blocks that the `gguf` package makes of them
(NAME.blocks). Needs numpy and gguf; run only when an encoder is added."""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType, quants

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "cases" / "encode"
BLOCK, BLOCKS = 32, 96


def rows():
    """Weights of every size, and what rounding may get wrong: ties, peaks of both signs, zeros, one number alone."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((BLOCKS, BLOCK)).astype(np.float32) * np.float32(10) ** rng.integers(-6, 3, (BLOCKS, 1))
    values = values.astype(np.float32)
    values[0] = 0
    values[1] = np.arange(BLOCK) - 15.5
    values[2] = (np.arange(BLOCK) - 16) * np.float32(0.5)
    values[3, :2] = [4, -4]
    values[4] = -values[5]
    values[6] = 0
    values[6, 31] = -1e-3
    values[7] = np.repeat(np.float32([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5]), 4)
    return values


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    values = rows()
    (OUT / "values.f32").write_bytes(values.tobytes())
    for name in ("Q8_0", "Q4_0", "MXFP4", "BF16"):
        blocks = quants.quantize(values, GGMLQuantizationType[name])
        (OUT / f"{name}.blocks").write_bytes(np.ascontiguousarray(blocks).tobytes())


if __name__ == "__main__":
    main()
