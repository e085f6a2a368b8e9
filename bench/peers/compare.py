#!/usr/bin/env python3
"""Kvasir against its peers, engine against engine: A B B A, medians of paired ratios, raw numbers as JSON.

    bench/peers/install.sh                                     once
    bench/peers/compare.py smollm2:135m --out bench/results/smollm2.json
    bench/peers/table.py bench/results/*.json                  the table

Per cell and peer every variant (build and flags) runs once and the fastest is kept; then come the pairs. Kvasir's own
bench probes the machine's limits before and after each of its runs; they are in the file beside every pair.

A virtual machine's cores may be halves of cores whose other halves belong to somebody else. With --undisturbed SHARE the
integer peak is probed before and after each pair as well, and a pair beside which it was below that share of the best
probe so far, there or in Kvasir's own probes, is measured again; the disturbed ones stay in the file, apart.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from programs import PEERS, Cell, Kvasir, LlamaCpp, ProgramFailed, run, variants_of_peers

CELLS = {str(cell): cell for cell in (
    *(Cell("prompt", n) for n in (128, 512, 2048)),
    Cell("generation", 128), Cell("generation", 32, depth=2048), Cell("generation", 32, depth=7000),
    *(Cell("generation", 32, batch=batch) for batch in (4, 8, 16, 32)), Cell("attention", 32, depth=7000))}
PROMPT = (  # about 128 tokens
    "The history of the city begins with a small harbour, where merchants from the north met the farmers of the valley. "
    "They traded wool and salt for grain, and in good years they built houses of stone along the river. When the old "
    "bridge was washed away in the spring floods, the council decided to build a wider one, so that two carts could "
    "pass each other without waiting. The work took eleven years and cost more than anybody had expected. Three of "
    "the masons stayed, married and opened a workshop near the gate, and their grandchildren still tell how the first "
    "stone was laid. The most important building in the city today is")
AGREEMENT_TOKENS = 64
MAX_TRIES = 3  # of a pair that somebody disturbs
MAX_PROBES = 10  # while somebody does


def path_of(kvasir, model):
    if pathlib.Path(model).exists():
        model = str(pathlib.Path(model).resolve())
    return json.loads(run([kvasir.binary, "show", model, "--json"]).stdout)[0]["path"]


def open_report(path, model):
    """The file's report of this model, or a report without rows."""
    if not path.exists():
        return {"rows": []}
    try:
        report = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as failure:
        raise SystemExit(f"compare: {path}: {failure}") from None
    if not isinstance(report, dict) or "rows" not in report:
        raise SystemExit(f"compare: {path}: is no report of compare.py")
    if report.get("model", model) != model:
        raise SystemExit(f"compare: {path}: has rows of {report['model']}, not of {model}")
    return report


class Watch:
    """Whether the machine was left alone: the integer peak now, as a share of the best seen."""

    def __init__(self, kvasir, least_share):
        self.kvasir, self.least_share, self.best, self.is_quiet = kvasir, least_share, 0.0, True
        if least_share > 0:
            for _ in range(3):
                self.probe()

    def probe(self):
        limits = json.loads(run([self.kvasir.binary, "doctor", "--json"]).stdout)["limits"]
        self.best = max(self.best, limits["int8_gmac_s"])
        self.is_quiet = limits["int8_gmac_s"] >= self.least_share * self.best

    def measure(self, pair):
        """The result of pair(), and whether it was undisturbed as far as the probes tell."""
        if self.least_share == 0:
            return pair(), True
        for _ in range(MAX_PROBES):
            if self.is_quiet:
                break
            time.sleep(1)
            self.probe()
        was_quiet = self.is_quiet
        result = pair()
        self.probe()
        beside = result["limits"]["int8_gmac_s"]
        self.best = max(self.best, beside)
        return result, was_quiet and self.is_quiet and beside >= self.least_share * self.best


def measure_pairs(watch, kvasir, peer, model, cell, num_pairs):
    """num_pairs undisturbed pairs, or what there is after as many tries as are reasonable; then the disturbed ones.
    A pair that gives no rates, such as attention that took no time beside the noise, is tried again. Raises the last
    ProgramFailed when none gave any."""
    pairs, disturbed = [], []
    for i in range(MAX_TRIES * num_pairs):
        try:
            pair, is_undisturbed = watch.measure(lambda: measure_pair(kvasir, peer, model, cell, ours_first=i % 2 == 0))
        except ProgramFailed:
            if i == MAX_TRIES * num_pairs - 1 and not pairs and not disturbed:
                raise
            continue
        (pairs if is_undisturbed else disturbed).append(pair)
        if len(pairs) == num_pairs:
            break
    return (pairs, disturbed) if pairs else (disturbed, [])


def measure_pair(kvasir, peer, model, cell, ours_first):
    order = (kvasir, peer) if ours_first else (peer, kvasir)
    rates = {program.name: program.rate(model, cell) for program in order}
    return {"kvasir": rates["kvasir"], "peer": rates[peer.name]} | kvasir.probe


def try_variants(variants, model, cell):
    """Each variant's rate, or why it has none."""
    tried = {}
    for variant in variants:
        try:
            print(f"{cell}: {variant.name}", file=sys.stderr, flush=True)
            tried[variant.name] = variant.rate(model, cell)
        except ProgramFailed as failure:
            tried[variant.name] = str(failure)
    return tried


def compare(watch, kvasir, variants, model, cell, num_pairs):
    """One row of the report; without a rate when no variant of the peer can do the cell."""
    tried = try_variants(variants, model, cell)
    able = [variant for variant in variants if isinstance(tried[variant.name], float)]
    row = {"cell": str(cell), "variants": tried}
    if not able:
        return row
    peer = max(able, key=lambda variant: tried[variant.name])
    try:
        pairs, disturbed = measure_pairs(watch, kvasir, peer, model, cell, num_pairs)
    except ProgramFailed as failure:
        return row | {"failed": str(failure)}
    ratios = sorted(pair["kvasir"] / pair["peer"] for pair in pairs)
    median = lambda key: statistics.median(pair[key] for pair in pairs)
    return row | {"peer": peer.name, "undisturbed": watch.least_share, "pairs": pairs, "disturbed": disturbed,
                  "ratio": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1], "kvasir_rate": median("kvasir"), "peer_rate": median("peer"),
                  "share_of_limit": None if pairs[0]["share_of_limit"] is None else median("share_of_limit")}


def compare_start(kvasir, peer, model, prompt_file, num_pairs):
    """Process start to the first token of a prompt of about 128, and peak resident memory."""
    runs = {"kvasir": [], "peer": []}
    for i in range(num_pairs):
        for key, program in (("kvasir", kvasir), ("peer", peer))[::1 if i % 2 == 0 else -1]:
            done = program.complete(model, prompt_file, 1)
            runs[key].append({"seconds": done.seconds, "peak_bytes": done.peak_bytes})
    median = {key: {field: statistics.median(run[field] for run in values) for field in ("seconds", "peak_bytes")}
              for key, values in runs.items()}
    return {"peer": peer.name, "runs": runs, "median": median}


def compare_outputs(kvasir, peer, model, prompt_file):
    """Both continue the same prompt greedily. Rounding differs, so texts may part somewhere; a wrong model parts at
    once."""
    ours, theirs = (program.complete(model, prompt_file, AGREEMENT_TOKENS).stdout.strip() for program in (kvasir, peer))
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    return {"peer": peer.name, "kvasir_text": ours, "peer_text": theirs, "same_characters": same}


def print_row(peer, row):
    if "peer" not in row:
        reasons = [row["failed"]] if "failed" in row else [str(tried) for tried in row["variants"].values()]
        print(f"{row['cell']:16} {peer}: cannot: {reasons[0] if reasons else 'not installed'}", flush=True)
        return
    share = "" if row["share_of_limit"] is None else f", {row['share_of_limit']:.0%} of the limit"
    print(f"{row['cell']:16} kvasir {row['kvasir_rate']:8.1f}  {row['peer_rate']:8.1f} {row['peer']:52} "
          f"x{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f}){share}", flush=True)


def has_tokenizer(kvasir, model):
    try:
        run([kvasir.binary, "tokenize", model, "text"])
        return True
    except ProgramFailed:
        return False


def key_of(row):
    return row["cell"], row["of"], row["mode"]


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, is {value}")
    return value


def share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and at most 1, is {text}")
    return value


def commit_of_checkout():
    """The measured source, if it was built last: the commit, and whether files differ from it."""
    git = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True,
                                        cwd=pathlib.Path(__file__).parent).stdout.strip()
    return git("rev-parse", "HEAD") + (" and changes" if git("status", "--porcelain", "--", "../../src") else "")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name of the catalogue or a GGUF file")
    parser.add_argument("--out", required=True, help="the JSON file to write; rows of cells that it has are replaced")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS), metavar="CELL",
                        help=f"of: {', '.join(CELLS)}")
    parser.add_argument("--peers", nargs="+", default=list(variants_of_peers(1)), choices=list(variants_of_peers(1)))
    parser.add_argument("--build", nargs=2, metavar=("NAME", "BINARY"),
                        help="instead of peers: another build of Kvasir, such as clang build/clang/bin/kvasir")
    parser.add_argument("--fast", action="store_true",
                        help="measure kvasir --fast, as rows of their own beside those of the exact mode")
    parser.add_argument("--pairs", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--undisturbed", type=share, default=0.0, metavar="SHARE",
                        help="measure pairs again beside which the integer peak was below this share of the best, 0 to 1")
    parser.add_argument("--no-start", action="store_true", help="leave out time to first token, memory and agreement")
    return parser.parse_args()


def main():
    args = arguments()
    if not args.build and not (PEERS / "bin").exists():
        raise SystemExit("compare: there are no peers in build/peers: run bench/peers/install.sh first")
    PEERS.mkdir(parents=True, exist_ok=True)  # where programs run
    kvasir = Kvasir(args.threads, flags=["--fast"] if args.fast else [])
    mode = "fast" if args.fast else "exact"
    model = path_of(kvasir, args.model)
    out = pathlib.Path(args.out)
    report = open_report(out, pathlib.Path(args.model).name)
    commit = commit_of_checkout()
    machine = json.loads(run([kvasir.binary, "doctor", "--json", "--threads", str(args.threads)]).stdout)
    del machine["checks"]  # about this installation, not about the machine
    if (cpu := report.get("machine", machine)["cpu"]) != machine["cpu"]:
        raise SystemExit(f"compare: {out} has rows of another machine ({cpu}, this is {machine['cpu']}): "
                         "choose another --out")
    if report["rows"] and (threads := report.get("threads", args.threads)) != args.threads:
        raise SystemExit(f"compare: {out} has rows of {threads} threads, not of {args.threads}: choose another --out")
    report |= {"model": pathlib.Path(args.model).name, "threads": args.threads, "machine": machine}

    def save():
        out.parent.mkdir(parents=True, exist_ok=True)
        whole = out.with_name(out.name + ".new")
        whole.write_text(json.dumps(report, indent=1) + "\n")
        whole.replace(out)

    save()  # what cannot be written is said before anything is measured
    peers = variants_of_peers(args.threads)
    if args.build:
        name, binary = args.build
        args.peers, args.no_start = [name], True
        peers = {name: [Kvasir(args.threads, name=name, binary=pathlib.Path(binary).resolve())]}
    watch = Watch(kvasir, args.undisturbed)
    for name in args.cells:
        for peer in args.peers:
            row = {"of": peer, "mode": mode, "commit": commit} | compare(
                watch, kvasir, peers[peer], model, CELLS[name], args.pairs)
            report["rows"] = [old for old in report["rows"] if key_of(old) != key_of(row)] + [row]
            print_row(peer, row)
            save()
    if not (args.no_start or args.fast) and has_tokenizer(kvasir, model):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
            prompt.write(PROMPT)
            prompt.flush()
            llama = LlamaCpp("llama.cpp native", "llama-native", args.threads)
            report["start"] = compare_start(kvasir, llama, model, prompt.name, args.pairs)
            report["outputs"] = compare_outputs(kvasir, llama, model, prompt.name)
        save()
        for key, value in report["start"]["median"].items():
            print(f"first token      {key:8} {value['seconds']:.2f} s, {value['peak_bytes'] / 2**20:.0f} MiB")
        print(f"outputs agree for {report['outputs']['same_characters']} characters")
        if report["outputs"]["same_characters"] == 0:
            raise SystemExit("compare: the outputs differ from the first character on")


if __name__ == "__main__":
    try:
        main()
    except (ProgramFailed, OSError) as failure:
        raise SystemExit(f"compare: {failure}") from None
    except KeyboardInterrupt:
        print("compare: interrupted; rows that were printed are kept", file=sys.stderr)
        raise SystemExit(130) from None
