#!/usr/bin/env python3
"""A float model drawn around a quantised one, to judge types as fine as the file: F32, with its distance from the file.

    between_the_grid.py SOURCE --text TEXT --work FOLDER --out MODEL.gguf [--ridge 0.05 --windows 256 --length 128 --seed 1]

Each number of a Q4_1 matrix moves, by a seeded uniform draw, within the cell of its code (inwards at both ends). That
alone loses much, so moves are taken back along the directions that the matrix's inputs have: by least squares over text that
SOURCE writes, with --ridge times the inputs' mean square as what a step back costs. What is claimed of the product is
claimed of a model around SOURCE, not of SOURCE. Prints the divergence from SOURCE on --text.
Exit codes: 0; 1 when a program fails.
"""
import json
import pathlib

import gguf
import numpy as np
import qat
import torch

from kvasir import train
from kvasir.train import gguf_file, masks
from kvasir.train.block_qat import through

Q4_1_BYTES, NUM_CODES = 20, 16


def drawn(tensor, random):
    """A Q4_1 tensor's numbers, each somewhere in its cell: [rows, columns]."""
    blocks = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1, Q4_1_BYTES)
    scale, minimum = (blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32) for at in (0, 2))
    codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1).astype(np.float32)
    moves = random.uniform(-0.5, 0.5, codes.shape).astype(np.float32)
    moves = np.where(codes == 0, np.abs(moves), np.where(codes == NUM_CODES - 1, -np.abs(moves), moves))
    rows, columns = int(tensor.shape[1]), int(tensor.shape[0])
    return torch.from_numpy(((codes + moves) * scale + minimum).reshape(rows, columns))


def draw_around(path, model, seed):
    """Moves the model's matrices."""
    reader, random = gguf.GGUFReader(path), np.random.default_rng(seed)
    parameters = dict(model.named_parameters())
    for tensor in reader.tensors:
        if tensor.tensor_type.name != "Q4_1" or not tensor.name.startswith("blk."):
            continue
        name = gguf_file.hub_name(tensor.name)
        values = drawn(tensor, random)
        if gguf_file.turns_neighbours(reader, name):
            values = gguf_file.by_halves(values, model.config.head_dim)
        with torch.no_grad():
            parameters[name].copy_(values)


def heal(moved, exact, windows, batch_size, ridge):
    """Takes moves back along the inputs' directions; the share of their squares that stays."""
    stayed = before = 0.0
    with torch.no_grad():
        hidden = exact.embed(windows)
        for block, exact_block in zip(moved.blocks, exact.blocks):
            moments = masks.input_moments(exact_block, hidden, batch_size, products=True)
            for first, names in masks.READERS.items():
                held = moments[first] + ridge * moments[first].diagonal().mean() * torch.eye(len(moments[first]))
                for name in names:
                    weight, wanted = (of.get_submodule(name).weight for of in (block, exact_block))
                    move = (weight - wanted).double()
                    rest = ridge * moments[first].diagonal().mean() * torch.linalg.solve(held, move.T).T
                    weight.copy_(wanted + rest.float())
                    stayed, before = stayed + float(rest.pow(2).sum()), before + float(move.pow(2).sum())
            through(exact_block, hidden, batch_size)
    return stayed / before


def arguments():
    numbers = {"windows": 256, "length": 128, "batch": 8, "seed": 1, "threads": 2, "scored": 12}
    parser = qat.parser_of(__doc__.splitlines()[0], ("--text", "--work", "--out"), numbers, 0.0)
    parser.add_argument("--ridge", type=float, default=0.05)
    return parser.parse_args()


def main():
    args = arguments()
    work = qat.begin_work(args)
    windows = qat.own_text(args.source, work, args)
    model = train.load(args.source)
    draw_around(args.source, model, args.seed)
    stayed = heal(model, train.load(args.source), windows, args.batch, args.ridge)
    train.export(model, work / "folder")
    out = qat.quantize(work / "folder", pathlib.Path(args.out), "F32")
    source = qat.quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    [found] = qat.run(qat.DIVERGENCE, source, args.text, args.scored, out).splitlines()
    print(json.dumps({"ridge": args.ridge, "share_of_squares_that_stayed": round(stayed, 4), **json.loads(found)}))


if __name__ == "__main__":
    main()
