#!/usr/bin/env python3
"""How fast this torch multiplies what training multiplies: one thread, F32 and with --matmul medium. Prints a JSON line each.

    torch_products.py [NAME]

NAME is kept with each line, such as that of the machine. Exit code: 0.
"""
import json
import sys
import time

import torch

SHAPES = {"ffn of SmolLM2": (1536, 576), "head of SmolLM2": (49152, 576)}
TOKENS, SECONDS = 512, 2.0


def gflops(matrix, rows):
    """Of the processor's time, so other programs matter less."""
    torch.nn.functional.linear(rows, matrix)
    begin, count = time.process_time(), 0
    while time.process_time() - begin < SECONDS:
        torch.nn.functional.linear(rows, matrix)
        count += 1
    return 2e-9 * count * rows.numel() * len(matrix) / (time.process_time() - begin)


def main():
    torch.set_num_threads(1)
    for matmul in ("highest", "medium"):
        torch.set_float32_matmul_precision(matmul)
        for name, shape in SHAPES.items():
            speed = gflops(torch.randn(*shape), torch.randn(TOKENS, shape[1]))
            print(json.dumps({"machine": "".join(sys.argv[1:]), "torch": torch.__version__, "matmul": matmul, "product": name,
                              "gflops": round(speed, 1)}))


if __name__ == "__main__":
    main()
