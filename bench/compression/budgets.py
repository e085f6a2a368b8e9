#!/usr/bin/env python3
"""Files of given sizes (kvasir quantize --bytes): how full they are, what was predicted, and what they lose.

    budgets.py SOURCE --calibrate TEXT --text TEXT --out FILE.json --mebibytes 80 85 90 ... [--beside QUALITY.json] [--windows 12]

SOURCE is a GGUF file of floats. The command compares each file with it on the text that SOURCE writes, which the prediction is of;
then the file is widened to F32 again and compared with SOURCE on TEXT (kvasir_divergence). QUALITY.json
is of quality.py with the same source, text and windows: no file may lose more than one of llama-quantize's that is as
large or smaller, and the larger ones that it beats are named. Exit codes: 0; 1 when a program fails, a file is larger than
its budget or smaller than 99.5% of it, loses more than one of fewer bytes, or more than llama-quantize's.
"""
import argparse
import json
import pathlib
import tempfile

import quality


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    for name in ("--calibrate", "--text", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--mebibytes", type=float, nargs="+", required=True)
    parser.add_argument("--beside", default="")
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--flags", nargs="*", default=[], help="of kvasir quantize, without their dashes: awq")
    return parser.parse_args()


def row_of(args, mebibytes, folder):
    path = folder / "file.gguf"
    said, seconds = quality.quantize(args.source, path, None, "--bytes", f"{round(mebibytes * 1024)}KiB", "--calibrate",
                                     args.calibrate, *[f"--{flag}" for flag in args.flags], verifies=True)
    num_bytes = path.stat().st_size
    wide = quality.widen(path)
    found = json.loads(quality.run(quality.DIVERGENCE, args.source, args.text, args.windows, wide)[0])
    wide.unlink()
    del found["file"]
    return {"budget_bytes": round(mebibytes * 1024) * 1024, "bytes": num_bytes, "predicted_kl": said["predicted_kl"],
            "own_kl": said["verify"]["kl"], "seconds": round(seconds, 1), **found}


def faults_of(rows, beside):
    """One line for each promise that a row breaks; rows in the order of their budgets."""
    for row, before in zip(rows, [None, *rows]):
        name, share = f"{row['budget_bytes'] >> 20} MiB", row["bytes"] / row["budget_bytes"]
        if not 0.995 <= share <= 1.0:
            yield f"{name}: {share:.2%} of the budget"
        if before and row["kl"] >= before["kl"]:
            yield f"{name}: KL {row['kl']:.4f}, with fewer bytes {before['kl']:.4f}"
        for other in beside:
            if other["bytes"] <= row["bytes"] and other["kl"] <= row["kl"]:
                yield f"{name}: KL {row['kl']:.4f}, {other['type']} of llama-quantize {other['kl']:.4f}"


def main():
    args = arguments()
    report = {"source": pathlib.Path(args.source).name, "calibrate": pathlib.Path(args.calibrate).name,
              "text": pathlib.Path(args.text).name, "windows": args.windows, "flags": args.flags, "rows": []}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for mebibytes in sorted(args.mebibytes):
            row = row_of(args, mebibytes, pathlib.Path(folder))
            report["rows"].append(row)
            pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
            print(f"{mebibytes:6.1f} MiB  {row['bytes'] / row['budget_bytes']:7.2%}  predicted {row['predicted_kl']:.4f} on own text {row['own_kl']:.4f}"
                  f"  KL {row['kl']:.4f}  ratio {row['ratio']:.4f}  {row['seconds']:.0f} s", flush=True)
    beside = json.loads(pathlib.Path(args.beside).read_text())["rows"] if args.beside else []
    beside = [each for each in beside if each["method"] == "llama-quantize"]
    for row in report["rows"]:
        row["larger_ones_beaten"] = [each["type"] for each in beside if each["bytes"] > row["bytes"] and each["kl"] > row["kl"]]
    report["faults"] = list(faults_of(report["rows"], beside))
    report["own_kl_within_a_quarter"] = sum(0.75 <= row["predicted_kl"] / row["own_kl"] <= 1.25 for row in report["rows"])
    pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    print(*report["faults"], sep="\n")
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
