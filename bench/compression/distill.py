#!/usr/bin/env python3
"""A student of at most 20M parameters learns from its teacher: loss by tokens, speed, and what 20M tokens would take.

    distill.py TEACHER --work FOLDER --out FILE.json [--steps 60 --windows 400 --length 128 --batch 4]

TEACHER is a GGUF file of the Llama architecture. Text is what it writes itself; the last --held-out windows are only scored.
FOLDER keeps the checkpoint: the same command goes on where it was stopped. Exit codes: 0; 1 when a program fails.
"""
import dataclasses
import json
import pathlib
import time

import torch

import qat
from kvasir import train
from kvasir.train.divergence import divergence

PLANNED_TOKENS = 20_000_000


def distance(teacher, student, windows):
    """KL a token and how often both say the same."""
    total = same = 0.0
    with torch.no_grad():
        for window in windows.split(4):
            told, said = teacher(window).log_softmax(-1), student(window)
            total += float(divergence(told, said)) * len(window)
            same += float((told.argmax(-1) == said.argmax(-1)).float().mean()) * len(window)
    return {"kl": round(total / len(windows), 4), "top1": round(same / len(windows), 4)}


def arguments():
    numbers = {"steps": 60, "windows": 400, "length": 128, "batch": 4, "held-out": 16, "seed": 1, "threads": 2}
    return qat.parser_of(__doc__.splitlines()[0], ("--work", "--out"), numbers, 2e-3).parse_args()


def main():
    args = arguments()
    work = qat.begin_work(args)
    windows = qat.own_text(args.source, work, args)
    held_out, windows = windows[-args.held_out:], windows[:-args.held_out]
    teacher = train.load(args.source)
    student = train.student_of(teacher, seed=args.seed)
    before = distance(teacher, student, held_out)
    options = train.DistillOptions(steps=args.steps, batch_size=args.batch, learning_rate=args.rate, seed=args.seed, save_every=20)
    distiller = train.Distiller(teacher, student, windows, options, checkpoint=work / "checkpoint")
    first, begin = len(distiller.losses), time.monotonic()
    losses = distiller.run(lambda step, loss: print(f"{time.monotonic() - begin:6.0f} s  step {step + 1}  KL {loss:.4f}", flush=True)
                           if (step + 1) % 10 == 0 else None)
    tokens = (len(losses) - first) * args.batch * args.length
    rate = tokens / (time.monotonic() - begin) if tokens else 0.0
    train.export(student, work / "student")
    path = qat.quantize(work / "student", work / "student.gguf", "Q8_0")
    report = {"teacher": pathlib.Path(args.source).name, "setting": qat.setting_of(args), "parameters": sum(each.numel() for each in student.parameters()),
              "config": student.config.to_json(), "options": dataclasses.asdict(options), "tokens": len(losses) * args.batch * args.length,
              "tokens_per_second": round(rate, 1), "hours_for_20m_tokens": round(PLANNED_TOKENS / rate / 3600, 1) if rate else None,
              "bytes": path.stat().st_size, "held_out_before": before, "held_out_after": distance(teacher, student, held_out),
              "loss_by_ten_steps": qat.means_of_ten(losses)}
    pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({key: report[key] for key in ("parameters", "tokens_per_second", "hours_for_20m_tokens", "held_out_before", "held_out_after")}))


if __name__ == "__main__":
    main()
