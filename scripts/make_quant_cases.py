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
    "Q2_K": (3, [80, 82]),
    "Q3_K": (3, [108]),
    "IQ4_NL": (6, [0]),
    "IQ4_XS": (3, [0]),
    "MXFP4": (6, []),
    "NVFP4": (6, []),
    "TQ1_0": (3, [52]),
    "TQ2_0": (3, [64]),
    "IQ3_S": (6, [0]),
    "IQ3_XXS": (6, [0]),
    "IQ2_S": (6, [0]),
    "IQ2_XS": (6, [0]),
    "IQ2_XXS": (6, [0]),
    "Q1_0": (3, [0]),
    "Q2_0": (6, [0]),
}
SIZES = {"F16": 2, "BF16": 2, "Q1_0": 18, "Q2_0": 18}  # of formats that the package only names
# Ordinary, negative, subnormal, largest, smallest normal, zero.
HALVES = np.array([0.0123, -0.37, 3e-7, 65504.0, 6.104e-05, 0.0], dtype=np.float16)


def own_q1_0(blocks):
    signs = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float32) * 2 - 1
    return (blocks[:, :2].copy().view(np.float16).astype(np.float32) * signs).reshape(-1)


def own_q2_0(blocks):
    codes = (blocks[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    values = codes.reshape(len(blocks), -1).astype(np.float32) - 1
    return (blocks[:, :2].copy().view(np.float16).astype(np.float32) * values).reshape(-1)


# The package has no reference for these; llama.cpp's description of the blocks is read here a second time.
OWN = {"Q1_0": own_q1_0, "Q2_0": own_q2_0}


def main():
    rng = np.random.default_rng(20240)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (num_blocks, half_offsets) in FORMATS.items():
        block_bytes = SIZES.get(name) or quants._type_traits[GGMLQuantizationType[name]].type_size
        blocks = rng.integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
        if name == "BF16":
            blocks[:, 1] &= 0xBF  # no infinities or NaNs
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 2, 120, 127, 250]  # 255 is NaN
        if name == "NVFP4":
            blocks[:, :4] %= 0x7f  # 0x7f is NaN
            blocks[0, :4] = [0, 1, 7, 8]
        for i, block in enumerate(blocks):
            for j, offset in enumerate(half_offsets):
                value = HALVES[(i + j) % len(HALVES)] if i < 6 else np.float16(rng.normal())
                block[offset:offset + 2] = np.frombuffer(value.tobytes(), np.uint8)
        if name == "F16":
            values = blocks.reshape(-1).view(np.float16).astype(np.float32)
        elif name in OWN:
            values = OWN[name](blocks)
        else:
            values = quants.dequantize(blocks.reshape(1, -1), GGMLQuantizationType[name]).reshape(-1)
        blocks.tofile(OUT / f"{name}.blocks")
        values.astype("<f4").tofile(OUT / f"{name}.f32")


if __name__ == "__main__":
    main()
