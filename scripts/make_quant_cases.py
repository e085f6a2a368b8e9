#!/usr/bin/env python3
"""Writes tests/cases/quant: per weight format, random blocks (NAME.blocks) and the float32 values the `gguf`
package reads from them (NAME.f32). Needs numpy and gguf; run only when a format is added."""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType, quants

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "cases" / "quant"
# name -> (blocks to write, byte offsets of fp16 fields in a block)
FORMATS = {
    "F16": (96, [0]),
    "BF16": (96, []),
    "Q8_0": (6, [0]),
    "Q4_0": (6, [0]),
    "Q4_1": (6, [0, 2]),
    "Q5_0": (6, [0]),
    "Q5_1": (6, [0, 2]),
    "Q4_K": (3, [0, 2]),
    "Q5_K": (3, [0, 2]),
    "Q6_K": (3, [208]),
}
# Ordinary, negative, subnormal, largest, smallest normal, zero.
HALVES = np.array([0.0123, -0.37, 3e-7, 65504.0, 6.104e-05, 0.0], dtype=np.float16)


def main():
    rng = np.random.default_rng(20240)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (num_blocks, half_offsets) in FORMATS.items():
        dtype = GGMLQuantizationType[name]
        block_bytes = {"F16": 2, "BF16": 2}.get(name) or quants._type_traits[dtype].type_size
        blocks = rng.integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
        if name == "BF16":
            blocks[:, 1] &= 0xBF  # no infinities or NaNs
        for i, block in enumerate(blocks):
            for j, offset in enumerate(half_offsets):
                value = HALVES[(i + j) % len(HALVES)] if i < 6 else np.float16(rng.normal())
                block[offset:offset + 2] = np.frombuffer(value.tobytes(), np.uint8)
        if name == "F16":
            values = blocks.reshape(-1).view(np.float16).astype(np.float32)
        else:
            values = quants.dequantize(blocks.reshape(1, -1), dtype).reshape(-1)
        blocks.tofile(OUT / f"{name}.blocks")
        values.astype("<f4").tofile(OUT / f"{name}.f32")


if __name__ == "__main__":
    main()
