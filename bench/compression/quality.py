#!/usr/bin/env python3
"""kvasir quantize beside llama-quantize: files of the same types from the same source and the same importance.

    quality.py SOURCE --calibrate TEXT --text TEXT --out FILE.json [--types Q4_0 Q4_K_M ...] [--methods gptq awq] [--windows 40]

SOURCE is a GGUF file of floats; `awq` is GPTQ behind scales of inputs (--awq). --text must not be the text of --calibrate, nor of the same articles. Every file is widened
to F32 again, so that its weights alone count, and compared with SOURCE (kvasir_divergence). Needs build/peers with the
target llama-quantize (cmake --build build/peers/build-llama-native --target llama-quantize) and the program
kvasir_divergence (-DKVASIR_BENCH=ON). Exit codes: 0; 1 when a program fails.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR, DIVERGENCE = ROOT / "build/release/bin/kvasir", ROOT / "build/release/bin/kvasir_divergence"
LLAMA_QUANTIZE = ROOT / "build/peers/bin/llama-native/llama-quantize"
TYPES = ["Q5_K_M", "Q4_K_M", "Q4_0", "Q3_K_M", "Q2_K"]
METHODS = ["rtn", "imatrix", "gptq", "awq"]


def run(*command):
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"quality: {' '.join(map(str, command))}: {done.stderr[-800:]}")
    return done.stdout, time.monotonic() - begin


def quantize(source, out, kind, *flags, verifies=False):
    """`kind`: a type, or None where the flags say what is wanted."""
    type_flags = [] if kind is None else ["--type", kind]
    said, seconds = run(KVASIR, "quantize", source, out, *type_flags, *([] if verifies else ["--no-verify"]), "--json", *flags)
    return json.loads(said), seconds


def widen(path):
    wide = path.with_suffix(".f32.gguf")
    quantize(path, wide, "F32", "--requantize")
    path.unlink()
    return wide


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--calibrate", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--windows", type=int, default=40)
    args = parser.parse_args()
    report = {"source": pathlib.Path(args.source).name, "calibrate": pathlib.Path(args.calibrate).name,
              "text": pathlib.Path(args.text).name, "windows": args.windows, "rows": []}
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = pathlib.Path(name)
        importance = folder / "importance.gguf"
        quantize(args.source, folder / "first.gguf", "Q8_0", "--calibrate", args.calibrate, "--method", "imatrix", "--imatrix-out", importance)
        for kind in args.types:
            files = {}
            flags = {"rtn": [], "imatrix": ["--imatrix-in", importance], "gptq": ["--calibrate", args.calibrate],
                     "awq": ["--calibrate", args.calibrate, "--awq"]}
            for method in args.methods:
                path = folder / f"kvasir-{method}.gguf"
                _, seconds = quantize(args.source, path, kind, *flags[method])
                files[method] = {"bytes": path.stat().st_size, "seconds": seconds, "path": widen(path)}
            path = folder / "llama.gguf"
            _, seconds = run(LLAMA_QUANTIZE, "--imatrix", importance, args.source, path, kind)
            files["llama-quantize"] = {"bytes": path.stat().st_size, "seconds": seconds, "path": widen(path)}
            found, _ = run(DIVERGENCE, args.source, args.text, args.windows, *[each["path"] for each in files.values()])
            for (method, each), line in zip(files.items(), found.splitlines()):
                row = {"type": kind, "method": method, "bytes": each["bytes"], "seconds": round(each["seconds"], 2), **json.loads(line)}
                del row["file"]
                report["rows"].append(row)
                each["path"].unlink()
                print(f"{kind:8} {method:15} {row['bytes'] / 2**20:7.1f} MiB {row['seconds']:6.1f} s  KL {row['kl']:.4f}"
                      f"  top1 {row['top1']:.4f}  ratio {row['ratio']:.4f}", flush=True)
            pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
