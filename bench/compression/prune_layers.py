#!/usr/bin/env python3
"""Whole layers removed, one to --layers of them: KL and perplexity to the source.

    prune_layers.py SOURCE --text TEXT --work FOLDER --out FILE.json [--layers 3 --windows 96 --length 128 --scoring 8]

SOURCE is a GGUF file of the Llama architecture; its numbers count as exact. Layers are chosen by the KL of their removal on
--scoring windows of text that the model writes itself. Nothing is trained afterwards. Exit codes: 0; 1 when a program fails.
"""
import dataclasses
import json
import pathlib
import shutil
import time

import qat
from kvasir import train
from kvasir.train.prune_layers import without_layers


def main():
    numbers = {"layers": 3, "windows": 96, "length": 128, "scoring": 8, "seed": 1, "threads": 1, "scored": 12}
    args = qat.parser_of(__doc__.splitlines()[0], ("--text", "--work", "--out"), numbers, 0.0).parse_args()
    work = qat.begin_work(args)
    windows = qat.own_text(args.source, work, args)[: args.scoring]
    model = train.load(args.source)
    count = model.config.num_hidden_layers
    begin = time.process_time()
    _, removed = train.prune_layers(model, windows, count - args.layers, progress=lambda each: print(
        f"{time.process_time() - begin:6.0f} s  layer {each.layer}  KL {each.divergence:.4f}", flush=True))
    source = qat.quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    files = []
    for gone in range(1, args.layers + 1):
        left = [number for number in range(count) if number not in [each.layer for each in removed[:gone]]]
        train.export(without_layers(model, left), work / "shorter")
        files.append(qat.quantize(work / "shorter", work / f"without-{gone}.gguf", "F32"))
        shutil.rmtree(work / "shorter")
    rows = [{"removed": gone + 1, "layers": [each.layer for each in removed[: gone + 1]], **json.loads(line)}
            for gone, line in enumerate(qat.run(qat.DIVERGENCE, source, args.text, args.scored, *files).splitlines())]
    for row, path in zip(rows, files):
        del row["file"]
        row["bytes_of_f32"] = path.stat().st_size
        path.unlink()
    report = {"source": pathlib.Path(args.source).name, "text": pathlib.Path(args.text).name, "scored_windows": args.scored,
              "of": count, "tokens": windows.numel(), "seed": args.seed, "rows": rows, "steps": [dataclasses.asdict(each) for each in removed]}
    pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
