#!/usr/bin/env python3
"""Kvasir against its peers, engine against engine: A B B A, medians of paired ratios, raw numbers as JSON.

    bench/peers/install.sh                                     once
    bench/peers/compare.py smollm2:135m --out bench/results/smollm2.json

Per cell and peer every variant (build and flags) runs once and the fastest is kept; then come the pairs. A pair whose
bandwidth or integer probe moved by more than 5% between its ends is run again, at most once each.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from programs import Cell, Kvasir, ik_variants, llama_variants, run

CELLS = {str(cell): cell for cell in (
    *(Cell("prompt", n) for n in (128, 512, 2048)),
    Cell("generation", 128), Cell("generation", 32, depth=2048), Cell("generation", 32, depth=7000),
    *(Cell("generation", 32, batch=batch) for batch in (4, 8, 16, 32)))}
FIRST_TOKEN_PROMPT = "the quick brown fox jumps over the lazy dog " * 14  # about 128 tokens
MAX_PROBE_CHANGE = 0.05


def path_of(kvasir, model):
    if pathlib.Path(model).exists():
        return model
    return json.loads(run([kvasir.binary, "show", model, "--json"]).stdout)[0]["path"]


def probes_agree(a, b):
    return all(abs(a[key] - b[key]) <= MAX_PROBE_CHANGE * a[key] for key in ("read_gb_s", "int8_gmac_s"))


def measure_pair(kvasir, peer, model, cell, ours_first):
    before = kvasir.limits()
    order = (kvasir, peer) if ours_first else (peer, kvasir)
    rates = {program.name: program.rate(model, cell) for program in order}
    return {"kvasir": rates["kvasir"], "peer": rates[peer.name], "limits_before": before,
            "limits_after": kvasir.limits()}


def compare(kvasir, variants, model, cell, num_pairs):
    tried = {variant.name: variant.rate(model, cell) for variant in variants}
    peer = max(variants, key=lambda variant: tried[variant.name])
    pairs = []
    for i in range(num_pairs):
        pair = measure_pair(kvasir, peer, model, cell, ours_first=i % 2 == 0)
        if not probes_agree(pair["limits_before"], pair["limits_after"]):
            pair = measure_pair(kvasir, peer, model, cell, ours_first=i % 2 == 0)
        pairs.append(pair)
    ratios = sorted(pair["kvasir"] / pair["peer"] for pair in pairs)
    return {"cell": str(cell), "peer": peer.name, "variants": tried, "pairs": pairs,
            "ratio": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1],
            "kvasir": statistics.median(pair["kvasir"] for pair in pairs),
            "peer_rate": statistics.median(pair["peer"] for pair in pairs)}


def compare_start(kvasir, peer, model, num_pairs):
    """Process start to the first token of a prompt of about 128, and peak resident memory."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
        prompt.write(FIRST_TOKEN_PROMPT)
        prompt.flush()
        runs = {"kvasir": [], "peer": []}
        for i in range(num_pairs):
            for key, program in (("kvasir", kvasir), ("peer", peer))[::1 if i % 2 == 0 else -1]:
                done = program.first_token(model, prompt.name)
                runs[key].append({"seconds": done.seconds, "peak_bytes": done.peak_bytes})
    median = {key: {field: statistics.median(run[field] for run in values) for field in ("seconds", "peak_bytes")}
              for key, values in runs.items()}
    return {"peer": peer.name, "runs": runs, "median": median}


def print_row(row):
    print(f"{row['cell']:16} kvasir {row['kvasir']:8.1f}  {row['peer_rate']:8.1f} {row['peer']:48} "
          f"x{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name of the catalogue or a GGUF file")
    parser.add_argument("--out", required=True, help="the JSON file to write")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS), metavar="CELL",
                        help=f"of: {', '.join(CELLS)}")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-start", action="store_true", help="leave out time to first token and memory")
    args = parser.parse_args()
    kvasir = Kvasir(args.threads)
    model = path_of(kvasir, args.model)
    llama = llama_variants(args.threads)
    report = {"model": args.model, "threads": args.threads, "rows": [],
              "commit": subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True,
                                       cwd=pathlib.Path(__file__).parent).stdout.strip(),
              "machine": json.loads(run([kvasir.binary, "doctor", "--json"]).stdout)}
    for name in args.cells:
        for variants in (llama, ik_variants(args.threads)):
            row = compare(kvasir, variants, model, CELLS[name], args.pairs)
            report["rows"].append(row)
            print_row(row)
            pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")
    if not args.no_start:
        report["start"] = compare_start(kvasir, llama[0], model, args.pairs)
        median = report["start"]["median"]
        for key in ("kvasir", "peer"):
            print(f"first token      {key:8} {median[key]['seconds']:.2f} s, {median[key]['peak_bytes'] / 2**20:.0f} MiB")
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
