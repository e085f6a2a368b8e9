#!/usr/bin/env python3
"""FFN neurons removed from each block, and recovery: perplexity beside the source's, size and speed of decoding.

    prune.py SOURCE --text TEXT --work FOLDER --out FILE.json [--neurons 1280 --windows 400 --length 128 --steps 60]

SOURCE is a GGUF file of the Llama architecture; its numbers count as exact. Columns of down_proj are fitted by least squares to
what was removed, over the first --fitted windows. Blocks are then trained, one after the other, on text that the model
writes itself; then for --end-steps steps all together, by the distance of predictions from the source's. FOLDER keeps
checkpoints. Speed is that of both models in --speed-type, alternately. Exit codes: 0; 1 when a program fails.
"""
import dataclasses
import json
import pathlib
import time


import qat
from kvasir import train


def decode_speeds(files, repeats):
    """Tokens a second of each file, the best of several runs that alternate."""
    best = dict.fromkeys(files, 0.0)
    for _ in range(repeats):
        for name, path in files.items():
            said = json.loads(qat.run(qat.KVASIR, "bench", path, "--json", "--prompt", 0, "--gen", 64, "--repeat", 1, "--threads", 2))
            best[name] = max(best[name], said["results"][0]["tokens_per_s"]["max"])
    return best


def arguments():
    numbers = {"neurons": 1280, "windows": 400, "fitted": 160, "length": 128, "steps": 60, "batch": 4, "seed": 1, "threads": 2, "scored": 12,
               "end-steps": 0, "end-batch": 4}
    parser = qat.parser_of(__doc__.splitlines()[0], ("--text", "--work", "--out"), numbers, 3e-4)
    parser.add_argument("--end-rate", type=float, default=2e-4)
    parser.add_argument("--speed-type", default="Q4_1")
    return parser.parse_args()


def main():
    args = arguments()
    work = qat.begin_work(args)
    begin = time.monotonic()
    windows = qat.own_text(args.source, work, args)
    teacher = train.load(args.source)
    pruned, blocks = train.prune_neurons(
        teacher, windows[: args.fitted], args.neurons,
        progress=lambda block: print(f"{time.monotonic() - begin:7.0f} s  block {block.block}  error {block.error:.5f}"
                                     f"  uncompensated {block.uncompensated:.5f}", flush=True))
    pruning_seconds = time.monotonic() - begin
    source = qat.quantize(args.source, work / "source.f32.gguf", "F32", "--requantize")
    files = {}

    def exported(name, model):
        train.export(model, work / name)
        files[name] = qat.quantize(work / name, work / f"{name}.gguf", "F32")

    exported("pruned", pruned)
    options = train.BlockQatOptions(type="", steps=args.steps, batch_size=args.batch, learning_rate=args.rate, seed=args.seed)
    recovered = []
    if args.steps > 0:
        recovered = train.train_blocks(pruned, windows, options, teacher=teacher, checkpoint=work / "checkpoint",
                                       progress=lambda block, step, loss: print(f"{time.monotonic() - begin:7.0f} s  block {block}  loss {loss:.6f}", flush=True)
                                       if step + 1 == args.steps else None)
    losses = qat.train_together(pruned, args, work, windows)
    exported("recovered", pruned)
    found = qat.run(qat.DIVERGENCE, source, args.text, args.scored, *files.values()).splitlines()
    rows = [{"method": name, **json.loads(line)} for name, line in zip(files, found)]
    fast = {name: qat.quantize(path, work / f"{name}.fast.gguf", args.speed_type)
            for name, path in {"source": source, "recovered": files["recovered"]}.items()}
    report = {"source": pathlib.Path(args.source).name, "text": pathlib.Path(args.text).name, "scored_windows": args.scored,
              "neurons": args.neurons, "of": teacher.config.intermediate_size, "options": dataclasses.asdict(options),
              "tokens": windows.numel(), "fitted_windows": min(args.fitted, len(windows)), "pruning_seconds": round(pruning_seconds), "seconds": round(time.monotonic() - begin),
              "setting": qat.setting_of(args), "processor_seconds": round(qat.worked_seconds()), "rows": rows, "bytes": {name: path.stat().st_size for name, path in fast.items()},
              "decode_tokens_per_second": decode_speeds(fast, 5), "speed_type": args.speed_type,
              "end_steps": args.end_steps, "end_batch": args.end_batch, "end_rate": args.end_rate, "end_losses_by_ten": qat.means_of_ten(losses),
              "blocks": [{"block": block.block, "error": block.error, "uncompensated": block.uncompensated} for block in blocks],
              "recovered": [dataclasses.asdict(after) for after in recovered]}
    pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({key: report[key] for key in ("rows", "bytes", "decode_tokens_per_second", "processor_seconds")}))


if __name__ == "__main__":
    main()
