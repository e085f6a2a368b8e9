#!/usr/bin/env python3
"""Writes a PEFT folder with an adapter of drawn numbers for every matrix of a Llama-shaped model's layers.

  make_lora_adapter.py FOLDER --hidden N --queries N --keys N --wide N --layers N [--rank N] [--seed N] [--spread X]

The sizes are of the model: hidden, all queries' and keys' rows, the feed-forward layer's. The same arguments give the same
bytes. Exit code: 0.
"""
import argparse
import array
import json
import pathlib
import random
import struct

SIZES = ("hidden", "queries", "keys", "wide", "layers")


def write_adapter(folder, sizes, rank, seed, spread=0.01, **config):
    """`sizes`: by the names in SIZES. `config`: further members of adapter_config.json."""
    hidden, queries, keys, wide, layers = (sizes[name] for name in SIZES)
    shapes = {"self_attn.q_proj": (hidden, queries), "self_attn.k_proj": (hidden, keys), "self_attn.v_proj": (hidden, keys),
              "self_attn.o_proj": (queries, hidden), "mlp.gate_proj": (hidden, wide), "mlp.up_proj": (hidden, wide),
              "mlp.down_proj": (wide, hidden)}
    draw = random.Random(seed)
    drawn = array.array("f", (draw.gauss(0, spread) for _ in range(1 << 16)))  # pieces of these: drawing is slow
    header, data = {}, bytearray()
    for layer in range(layers):
        for module, (inputs, outputs) in shapes.items():
            for half, (rows, columns) in (("A", (rank, inputs)), ("B", (outputs, rank))):
                begin, count = len(data), rows * columns
                while count > 0:
                    first = draw.randrange(len(drawn))
                    piece = drawn[first:first + count]
                    data += piece.tobytes()
                    count -= len(piece)
                header[f"base_model.model.model.layers.{layer}.{module}.lora_{half}.weight"] = {
                    "dtype": "F32", "shape": [rows, columns], "data_offsets": [begin, len(data)]}
    folder = pathlib.Path(folder)
    folder.mkdir()
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank} | config))
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spread", type=float, default=0.01)
    arguments = parser.parse_args()
    write_adapter(arguments.folder, vars(arguments), arguments.rank, arguments.seed, arguments.spread)


if __name__ == "__main__":
    main()
