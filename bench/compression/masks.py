#!/usr/bin/env python3
"""Masks by magnitude, Wanda and SparseGPT beside each other: half of the weights, 4:8 and 2:4; KL and perplexity to the source.

    masks.py SOURCE --text TEXT --work FOLDER --out FILE.json [--patterns dense 50% 4:8 2:4 --windows 96 --length 128]

SOURCE is a GGUF file of the Llama architecture; its numbers count as exact. Inputs are measured on text that the model writes
itself, never on --text. Models are scored as F32, so that masks alone count; SparseGPT's of 2:4 also in nearest codes, which keep
zeros. Beside them stand dense types by importance, which SparseGPT's inputs say too; types of 256 weights see rows filled up with
zeros, which no file has. Exit codes: 0; 1 when a program fails or zeros are not as many as the mask has.
"""
import copy
import json
import pathlib
import shutil
import time

import numpy as np
import qat
import torch
from kvasir import quant, train
from kvasir.train.block_qat import through
from kvasir.train.masks import READERS, input_moments

TYPES = ("Q8_0", "Q4_0")
DENSE = ("Q4_0", "Q3_K", "Q2_K", "Q2_0")
BLOCK = 256  # the longest of a type


def arguments():
    numbers = {"windows": 96, "length": 128, "batch": 4, "seed": 1, "threads": 1, "scored": 12}
    parser = qat.parser_of(__doc__.splitlines()[0], ("--text", "--work", "--out"), numbers, 0.0)
    parser.add_argument("--patterns", nargs="+", default=["dense", "50%", "4:8", "2:4"])
    return parser.parse_args()


def files_of(model, work, method, types):
    """The model's numbers as F32, and as each type stands for them, by their names."""
    folder = work / method
    train.export(model, folder)
    files = {"F32": qat.quantize(folder, work / f"{method}.F32.gguf", "F32")}
    for kind in types:
        made = qat.quantize(folder, work / f"{method}.made.gguf", kind, "--method", "rtn")
        files[kind] = qat.quantize(made, work / f"{method}.{kind}.gguf", "F32", "--requantize")
        made.unlink()
    shutil.rmtree(folder)
    return files


def rounded_models(model, windows, batch):
    """The model with all matrices of its blocks in a type, for each of DENSE; importance is that of a third of the windows."""
    models = {kind: copy.deepcopy(model) for kind in DENSE}
    with torch.no_grad():
        hidden = model.embed(windows[: len(windows) // 3])
        for number, block in enumerate(model.blocks):
            moments = input_moments(block, hidden, batch, products=False)
            through(block, hidden, batch)
            for first, names in READERS.items():
                for name in names:
                    weight = block.get_submodule(name).weight.detach().numpy()
                    fill = -weight.shape[1] % BLOCK
                    importance = np.pad(moments[first].numpy().astype(np.float32), (0, fill))
                    for kind, each in models.items():
                        values = quant.round_trip(np.pad(weight, ((0, 0), (0, fill))), kind, importance, threads=1)
                        each.blocks[number].get_submodule(name).weight.copy_(torch.from_numpy(values[:, : weight.shape[1]]))
    return models


def masked_models(pattern, model, windows, batch):
    """Rows, and the models that they are of."""
    for method in train.masks.METHODS:
        begin = time.process_time()
        masked, blocks = train.mask_weights(model, windows, train.MaskOptions(method, pattern if ":" in pattern else "", 0.5, batch))
        seconds = time.process_time() - begin
        zeros, weights = sum(block.zeros for block in blocks), sum(block.weights for block in blocks)
        if not 0.5 <= zeros / weights < 0.5001:  # the source may have zeros itself
            raise SystemExit(f"masks: {method} {pattern}: {zeros} of {weights} are zeros")
        print(f"{method} {pattern}: {seconds:.0f} s of the processor", flush=True)
        yield {"method": method, "pattern": pattern, "type": "F32", "zeros": zeros / weights, "cpu_seconds": round(seconds)}, masked


def rows_of(pattern, model, windows, source, work, args):
    rows, paths = [], []
    if pattern == "dense":
        models = [({"method": "importance", "pattern": pattern, "type": kind, "zeros": 0.0}, each)
                  for kind, each in rounded_models(model, windows, args.batch).items()]
    else:
        models = masked_models(pattern, model, windows, args.batch)
    for row, each in models:
        types = TYPES if (row["method"], pattern) == ("sparsegpt", "2:4") else ()
        name = f"{row['method']}-{row['type']}"
        for kind, path in files_of(each, work, name, types).items():
            rows.append(row if kind == "F32" else {**row, "type": kind})
            paths.append(path)
    for row, line in zip(rows, qat.run(qat.DIVERGENCE, source, args.text, args.scored, *paths).splitlines()):
        row.update(json.loads(line))
        del row["file"]
        print(json.dumps(row), flush=True)
    for path in paths:
        path.unlink()
    return rows


def main():
    args = arguments()
    work = qat.begin_work(args)
    windows = qat.own_text(args.source, work, args)
    model = train.load(args.source)
    source = qat.quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    report = {"source": pathlib.Path(args.source).name, "text": pathlib.Path(args.text).name, "scored_windows": args.scored,
              "tokens": windows.numel(), "seed": args.seed, "rows": []}
    for pattern in args.patterns:
        report["rows"] += rows_of(pattern, model, windows, source, work, args)
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
