#!/usr/bin/env python3
"""Masks by magnitude, Wanda and SparseGPT beside each other: half of the weights, 4:8 and 2:4; KL and perplexity to the source.

    masks.py SOURCE --text TEXT --work FOLDER --out FILE.json [--windows 96 --length 128 --scored 12]

SOURCE is a GGUF file of the Llama architecture; its numbers count as exact. Inputs are measured on text that the model writes
itself, never on --text. Models are scored as F32, so that masks alone count; those of 2:4 also as --types by nearest codes, which
keep zeros. Rows that FILE has are not made again. Exit codes: 0; 1 when a program fails or zeros are not those of the mask.
"""
import json
import pathlib
import shutil
import time

import qat
from kvasir import train

PATTERNS = ("", "4:8", "2:4")


def arguments():
    numbers = {"windows": 96, "length": 128, "batch": 4, "seed": 1, "threads": 1, "scored": 12}
    parser = qat.parser_of(__doc__.splitlines()[0], ("--text", "--work", "--out"), numbers, 0.0)
    parser.add_argument("--methods", nargs="+", default=list(train.masks.METHODS))
    parser.add_argument("--types", nargs="+", default=["Q8_0", "Q4_0"])
    return parser.parse_args()


def files_of(model, work, types):
    """The model's numbers as F32, and as each type stands for them, by their names."""
    shutil.rmtree(work / "masked", ignore_errors=True)
    train.export(model, work / "masked")
    files = {"F32": qat.quantize(work / "masked", work / "masked.F32.gguf", "F32")}
    for kind in types:
        made = qat.quantize(work / "masked", work / f"masked.{kind}.made.gguf", kind, "--method", "rtn")
        files[kind] = qat.quantize(made, work / f"masked.{kind}.gguf", "F32", "--requantize")
        made.unlink()
    return files


def main():
    args = arguments()
    work = qat.begin_work(args)
    out = pathlib.Path(args.out)
    report = json.loads(out.read_text()) if out.exists() else {
        "source": pathlib.Path(args.source).name, "text": pathlib.Path(args.text).name, "scored_windows": args.scored,
        "tokens": args.windows * args.length, "seed": args.seed, "threads": args.threads, "rows": []}
    windows = qat.own_text(args.source, work, args)
    model = train.load(args.source)
    source = qat.quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    for pattern in reversed(PATTERNS):
        for method in args.methods:
            if any((row["method"], row["pattern"]) == (method, pattern or "50%") for row in report["rows"]):
                continue
            begin = time.process_time()
            masked, blocks = train.mask_weights(model, windows, train.MaskOptions(method, pattern, 0.5, args.batch))
            seconds = time.process_time() - begin
            zeros, weights = sum(block.zeros for block in blocks), sum(block.weights for block in blocks)
            files = files_of(masked, work, args.types if pattern == "2:4" else [])
            found = qat.run(qat.DIVERGENCE, source, args.text, args.scored, *files.values()).splitlines()
            for kind, line in zip(files, found):
                row = {"method": method, "pattern": pattern or "50%", "type": kind, "zeros": zeros / weights,
                       "cpu_seconds": round(seconds), **json.loads(line)}
                del row["file"]
                report["rows"].append(row)
                print(json.dumps(row), flush=True)
            for path in files.values():
                path.unlink()
            out.write_text(json.dumps(report, indent=1) + "\n")
            if not 0.5 <= zeros / weights < 0.5001:  # the source may have zeros itself
                raise SystemExit(f"masks: {method} {pattern}: {zeros} of {weights} are zeros")


if __name__ == "__main__":
    main()
