#!/usr/bin/env python3
"""Writes src/quant/grids.cc: the grids of the IQ2 and IQ3 formats, which are a part of GGUF's definition, as the `gguf`
package has them. Needs numpy and gguf; run only when a format is added."""
import pathlib

import numpy as np
from gguf import quants

OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "quant" / "grids.cc"
# name -> (class, bits of a magnitude's number in an entry)
GRIDS = {"kIq2XxsGrid": (quants.IQ2_XXS, 2), "kIq2XsGrid": (quants.IQ2_XS, 2), "kIq2SGrid": (quants.IQ2_S, 2),
         "kIq3XxsGrid": (quants.IQ3_XXS, 4), "kIq3SGrid": (quants.IQ3_S, 4)}
PER_LINE = 14


def entries(quant, bits):
    quant.init_grid()
    numbers = np.searchsorted(np.array(quant.grid_map), quant.grid.reshape(quant.grid_shape).astype(int))
    return [sum(int(number) << bits * i for i, number in enumerate(row)) for row in numbers]


def main():
    lines = ["// Made by scripts/make_grids.py.", '#include "quant/grids.h"', "", "namespace kvasir::quant {"]
    for name, (quant, bits) in GRIDS.items():
        words = [f"0x{entry:04x}" for entry in entries(quant, bits)]
        lines += ["", f"constinit const std::uint16_t {name}[{len(words)}] = {{"]
        lines += ["    " + ", ".join(words[i:i + PER_LINE]) + "," for i in range(0, len(words), PER_LINE)]
        lines += ["};"]
    OUT.write_text("\n".join([*lines, "", "}  // namespace kvasir::quant", ""]))


if __name__ == "__main__":
    main()
