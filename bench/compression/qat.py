#!/usr/bin/env python3
"""QAT of a model beside nearest codes: one type, KL to the source from files whose weights alone count.

    qat.py SOURCE --type Q4_0 --text TEXT --work FOLDER --out FILE.json [--start gptq] [--windows 512 --length 128 --steps 100]

SOURCE is a GGUF file of the Llama architecture; its numbers count as exact. The model trains on text that it writes itself,
never on --text. It begins at nearest codes, or at those of `kvasir quantize` (--start gptq, awq), which reads half of
that text, and whose file is scored too. After the blocks, --end-steps steps train all of them together, by the distance of
the model's predictions from the source's. FOLDER keeps checkpoints: the same command goes on where it was stopped. Needs the
package kvasir with its extra `train`, and the programs kvasir and kvasir_divergence (-DKVASIR_BENCH=ON). Exit codes: 0; 1
when a program fails or when quantising changed a code.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import time

import gguf
import numpy as np
import torch

import kvasir
from kvasir import train
from kvasir.train import gguf_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK_MATRICES = r"^blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight$"
KVASIR, DIVERGENCE = ROOT / "build/release/bin/kvasir", ROOT / "build/release/bin/kvasir_divergence"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"qat: {' '.join(map(str, command))}: {done.stderr[-800:]}")
    return done.stdout


def quantize(source, out, kind, *flags):
    run(KVASIR, "quantize", source, out, "--type", kind, "--no-verify", *flags)
    return out


def own_text(source, work, args):
    """Windows that the model wrote, kept for the runs that follow."""
    path = work / f"own-{args.windows}x{args.length}-{args.seed}.npy"
    if not path.exists():
        with kvasir.LLM(source, threads=args.threads, max_num_seqs=32, ctx=1024) as llm:
            np.save(path, train.own_windows(llm, args.windows, args.length, args.seed).numpy())
    return torch.from_numpy(np.load(path))


def parser_of(description, required, numbers, rate):
    """The arguments of the scripts that train: SOURCE, paths that are required, whole numbers with defaults, the rate."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("source")
    for name in required:
        parser.add_argument(name, required=True)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=rate)
    parser.add_argument("--matmul", choices=("highest", "medium"), default="highest", help="medium: products of bfloat16")
    return parser


def begin_work(args):
    """The folder of --work, made; torch has --threads and --matmul."""
    torch.set_num_threads(args.threads)
    torch.set_float32_matmul_precision(args.matmul)
    work = pathlib.Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    return work


def setting_of(args):
    """What the seconds of a report depend on besides its options."""
    return {"torch": torch.__version__, "threads": args.threads, "matmul": args.matmul}


def means_of_ten(losses):
    return [round(sum(losses[i : i + 10]) / len(losses[i : i + 10]), 4) for i in range(0, len(losses), 10)]


def worked_seconds():
    """Of the processors, for this program and those that it ran."""
    return sum(os.times()[:4])


def arguments():
    numbers = {"windows": 512, "length": 128, "steps": 100, "batch": 8, "seed": 1, "threads": 2, "scored": 12,
               "end-steps": 0, "end-batch": 4}
    parser = parser_of(__doc__.splitlines()[0], ("--type", "--text", "--work", "--out"), numbers, 3e-4)
    parser.add_argument("--end-rate", type=float, default=3e-4)
    parser.add_argument("--start", choices=("nearest", "gptq", "awq"), default="nearest")
    return parser.parse_args()


def begin_at(args, work, source, windows):
    """The file whose codes training begins at. A type that the package gguf cannot read is that of all the blocks' matrices."""
    path = work / f"{args.start}.gguf"
    if path.exists():
        return path
    text = work / "own.txt"
    with kvasir.LLM(args.source, threads=args.threads) as llm:
        text.write_text(llm.detokenize(windows[: len(windows) // 2].reshape(-1).tolist()))
    flags = (["--awq"] if args.start == "awq" else []) + ([] if is_readable(args.type) else ["--keep", f"{BLOCK_MATRICES}={args.type}"])
    return quantize(source, path, args.type, "--calibrate", text, *flags)


def widened(path, work):
    """The file's numbers as F32; made once."""
    out = work / f"{path.stem}.f32.gguf"
    if not out.exists() or out.stat().st_mtime < path.stat().st_mtime:
        quantize(path, out, "F32", "--requantize")
    return out


def is_readable(kind):
    return kind in gguf.GGMLQuantizationType.__members__


def other_types(path, kind):
    """The matrices of blocks in another type, by the names of kvasir.train and by those of the file."""
    if not is_readable(kind):
        return {}, ["--keep", f"{BLOCK_MATRICES}={kind}"]
    found = [tensor for tensor in gguf.GGUFReader(path).tensors if tensor.name.startswith("blk.") and len(tensor.shape) == 2]
    found = [(tensor.name, tensor.tensor_type.name) for tensor in found if tensor.tensor_type.name != kind]
    hub = {gguf_file.hub_name(name).removeprefix("model.").removesuffix(".weight"): other for name, other in found}
    return hub, [word for name, other in found for word in ("--keep", f"^{re.escape(name)}$={other}")]


def train_codes(args, work, start, windows):
    """The model with its trained codes, what its blocks gained, the options, and flags that keep its types in a file."""
    others, keep = other_types(start, args.type) if start else ({}, [])
    begin = worked_seconds()
    options = train.BlockQatOptions(type=args.type, others=others, steps=args.steps, batch_size=args.batch,
                                    learning_rate=args.rate, seed=args.seed)

    def progress(block, step, loss):
        if (step + 1) % 20 == 0:
            print(f"{worked_seconds() - begin:7.0f} s  block {block}  step {step + 1}  loss {loss:.6f}", flush=True)

    model = train.load(widened(start, work) if start else args.source)
    blocks = train.train_blocks(model, windows, options, teacher=train.load(args.source), checkpoint=work / "checkpoint",
                                progress=progress)
    return model, blocks, options, keep


def train_together(model, args, work, windows):
    """From end to end; embeddings and the head stay as they are. Losses of the steps; empty without --end-steps."""
    if args.end_steps == 0:
        return []
    options = train.DistillOptions(steps=args.end_steps, batch_size=args.end_batch, learning_rate=args.end_rate, weight_decay=0.0,
                                   frozen=("embed_tokens", "lm_head"), seed=args.seed, save_every=40)
    begin = worked_seconds()

    def progress(step, loss):
        if (step + 1) % 10 == 0:
            print(f"{worked_seconds() - begin:7.0f} s  step {step + 1}  KL {loss:.4f}", flush=True)

    return train.Distiller(train.load(args.source), model, windows, options, checkpoint=work / "end").run(progress)


def main():
    args = arguments()
    work = begin_work(args)
    windows = own_text(args.source, work, args)
    source = quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    begin, worked = time.monotonic(), worked_seconds()
    start = None if args.start == "nearest" else begin_at(args, work, source, windows)
    model, blocks, options, keep = train_codes(args, work, start, windows)
    losses = train_together(model, args, work, windows)
    seconds, processor_seconds = time.monotonic() - begin, worked_seconds() - worked
    train.export(model, work / "folder")
    trained = quantize(work / "folder", work / "qat.gguf", args.type, "--method", "rtn", *keep)
    others = {"start": start} if start else {"rtn": quantize(source, work / "rtn.gguf", args.type, "--method", "rtn")}
    files = {"qat": widened(trained, work), **{method: widened(path, work) for method, path in others.items()}}
    found = run(DIVERGENCE, source, args.text, args.scored, *files.values()).splitlines()
    differing, compared = train.differing_codes(model, files["qat"])
    rows = [{"method": method, **json.loads(line)} for method, line in zip(files, found)]
    report = {"source": pathlib.Path(args.source).name, "text": pathlib.Path(args.text).name, "scored_windows": args.scored,
              "setting": setting_of(args), "options": {**vars(args), **dataclasses.asdict(options)}, "tokens": windows.numel(), "bytes": trained.stat().st_size,
              **{f"bytes_of_{method}": path.stat().st_size for method, path in others.items()}, "seconds": round(seconds),
              "processor_seconds": round(processor_seconds), "differing_codes": differing, "compared_codes": compared,
              "rows": rows, "end_losses_by_ten": means_of_ten(losses), "blocks": [dataclasses.asdict(block) for block in blocks]}
    for path in ("source", "text", "work", "out"):
        report["options"].pop(path)
    pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({key: report[key] for key in ("rows", "seconds", "processor_seconds", "differing_codes", "compared_codes")}))
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
