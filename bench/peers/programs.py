"""The programs that are compared, each as a function from a cell to one measured rate.

A cell is one kind of work: a prompt of n tokens; `batch` streams that each generate n tokens behind `depth` others; or the
attention part of generation, the time a token takes at `depth` beyond what it takes at 0. Every call is one process, or
two for attention: load, warm up as the program's own benchmark does, one counted run.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
BATCH_DEPTH = 16  # of several streams: llama-batched-bench wants a prompt


class ProgramFailed(Exception):
    """A program that could not do its work; the message is its last words."""


@dataclasses.dataclass(frozen=True)
class Cell:
    kind: str  # "prompt", "generation" or "attention"
    tokens: int
    depth: int = 0
    batch: int = 1

    def __str__(self):
        if self.kind == "prompt":
            return f"pp{self.tokens}"
        if self.kind == "attention":
            return f"attention{self.depth}"
        return f"tg{self.tokens}" + (f"@{self.depth}" if self.depth else "") + (
            f"x{self.batch}" if self.batch > 1 else "")

    def at_depth(self, depth):
        return dataclasses.replace(self, kind="generation", depth=depth)


@dataclasses.dataclass(frozen=True)
class Finished:
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int


def without_folders(words):
    """The words as a report may keep them: a path says nothing where it was not measured."""
    return " ".join(pathlib.PurePath(word).name if "/" in word else word for word in words)


def run(command):
    """The finished process with wall time and peak resident memory."""
    command = [str(part) for part in command]
    out, err = (os.memfd_create(name) for name in ("out", "err"))
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                               cwd=PEERS)  # ik_llama.cpp leaves a llama.log
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    texts = []
    for stream in (out, err):
        os.lseek(stream, 0, os.SEEK_SET)
        with os.fdopen(stream, "rb") as file:
            texts.append(file.read().decode(errors="replace"))
    if process.returncode != 0:
        words = texts[1].strip().splitlines()[-1:] or ["no message"]
        raise ProgramFailed(f"{without_folders(command)}: exit code {process.returncode}: "
                            f"{without_folders(words[0].split())[:200]}")
    return Finished(*texts, seconds, usage.ru_maxrss * 1024)


class Program:
    """rate() of what a subclass measures as prompt_rate and generation_rate, and attention_rate of the latter."""

    name = ""

    def rate(self, model, cell):
        if cell.kind == "prompt":
            return self.prompt_rate(model, cell)
        if cell.kind == "generation":
            return self.generation_rate(model, cell)
        return self.attention_rate(model, cell)

    def attention_rate(self, model, cell):
        return self.rate_of_difference(
            cell, [self.generation_rate(model, cell.at_depth(depth)) for depth in (0, cell.depth)])

    def rate_of_difference(self, cell, rates):
        """The rate of the extra time of a token at depth beyond one at 0."""
        seconds = [1 / rate for rate in rates]
        if seconds[1] <= seconds[0]:
            raise ProgramFailed(f"{self.name}: generation at depth {cell.depth} took no longer than at 0")
        return 1 / (seconds[1] - seconds[0])


class Kvasir(Program):
    def __init__(self, threads, flags=(), name="kvasir", binary=ROOT / "build" / "release" / "bin" / "kvasir"):
        self.threads, self.flags, self.name, self.binary = threads, flags, name, binary
        self.probe = {}  # the machine's limits beside the last rate, and its share of them
        self.bytes_per_step = None  # that the last generation read

    def prompt_rate(self, model, cell):
        return self._bench(model, "--prompt", cell.tokens, "--gen", 0)

    def generation_rate(self, model, cell):
        depth = cell.depth if cell.batch == 1 else BATCH_DEPTH
        return self._bench(model, "--prompt", 0, "--gen", cell.tokens, "--batch", cell.batch, "--depth", depth)

    def attention_rate(self, model, cell):
        rates, reads, bandwidths = [], [], []
        for depth in (0, cell.depth):
            rates.append(self.generation_rate(model, cell.at_depth(depth)))
            reads.append(self.bytes_per_step)
            bandwidths.append(self.probe["limits"]["read_gb_s"])
        rate = self.rate_of_difference(cell, rates)
        self.probe["share_of_limit"] = rate * (reads[1] - reads[0]) / (1e9 * max(bandwidths))
        return rate

    def _bench(self, model, *work):
        done = run([self.binary, "bench", model, "--repeat", 1, "--threads", self.threads, "--json", "--quiet", *work,
                    *self.flags])
        result = json.loads(done.stdout)["results"][0]
        self.probe = {"limits": result["limits"], "share_of_limit": result["share_of_limit"]}
        self.bytes_per_step = result.get("bytes_per_step")
        return result["tokens_per_s"]["median"]

    def complete(self, model, prompt_file, num_tokens):
        return run([self.binary, "run", model, "--raw", "--file", prompt_file, "--max-tokens", num_tokens,
                    "--temperature", 0, "--threads", self.threads, "--quiet"])


class LlamaCpp(Program):
    """One build of llama.cpp or of its fork, with one set of flags."""

    def __init__(self, name, folder, threads, bench_flags=(), batched_flags=()):
        self.name, self.folder, self.threads = name, PEERS / "bin" / folder, threads
        self.bench_flags, self.batched_flags = bench_flags, batched_flags

    def prompt_rate(self, model, cell):
        return self._bench(model, "-p", cell.tokens, "-n", 0)

    def generation_rate(self, model, cell):
        if cell.batch > 1:
            return self._batched(model, cell)
        return self._bench(model, *(self._behind(cell) if cell.depth else ["-p", 0, "-n", cell.tokens]))

    def _behind(self, cell):
        return ["-p", 0, "-n", cell.tokens, "-d", cell.depth]

    def _bench(self, model, *work):
        done = run([self.folder / "llama-bench", "-m", model, "-t", self.threads, "-r", 1, "-o", "json", *work,
                    *self.bench_flags])
        rows = json.loads(done.stdout[done.stdout.index("["):done.stdout.rindex("]") + 1])
        return rows[-1]["avg_ts"]

    def _batched(self, model, cell):
        context = cell.batch * (BATCH_DEPTH + cell.tokens)
        done = run([self.folder / "llama-batched-bench", "-m", model, "-t", self.threads, "-c", context, "-b", 2048,
                    "-npp", BATCH_DEPTH, "-ntg", cell.tokens, "-npl", cell.batch, *self.batched_flags])
        rows = re.findall(r"^\|\s*\d+ \|\s*\d+ \|\s*\d+ \|.*$", done.stdout + done.stderr, re.MULTILINE)
        if not rows:
            raise ProgramFailed(f"{self.name}: llama-batched-bench printed no result")
        return float(rows[-1].split("|")[8])

    def complete(self, model, prompt_file, num_tokens):
        return run([self.folder / "llama-completion", "-m", model, "-f", prompt_file, "-n", num_tokens, "--temp", 0,
                    "-no-cnv", "-t", self.threads, "--no-display-prompt"])


class IkLlama(LlamaCpp):
    """Its flash attention of several streams ends in a failed assertion, so the variants without it matter there."""

    def _behind(self, cell):
        return ["-p", 0, "-n", 0, "-gp", f"{cell.depth},{cell.tokens}"]


class OpenVino(Program):
    name = "OpenVINO GenAI"

    def __init__(self, threads):
        self.threads = threads

    def prompt_rate(self, model, cell):
        return self._measure(model, "--prompt", cell.tokens)

    def generation_rate(self, model, cell):
        if cell.batch > 1:
            raise ProgramFailed(f"{self.name}: several streams are not measured")
        return self._measure(model, "--gen", cell.tokens, "--depth", max(1, cell.depth))

    def _measure(self, model, *work):
        done = run([PEERS / "venv" / "bin" / "python", pathlib.Path(__file__).parent / "openvino_rate.py", model,
                    "--threads", self.threads, *work])
        return json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]


def llama_variants(threads):
    return [LlamaCpp(f"llama.cpp {build}, flash attention {fa}", f"llama-{build}", threads, ["-fa", fa], ["-fa", fa])
            for build in ("native", "nofp16", "noamx") if (PEERS / "bin" / f"llama-{build}").exists() for fa in ("on", "off")]


def ik_variants(threads):
    return [IkLlama(f"ik_llama.cpp, repack {'on' if rtr else 'off'}, flash attention {fa}", "ik", threads,
                    ["-rtr", rtr, "-fa", int(fa == "on")], (["-rtr"] if rtr else []) + ["-fa", fa])
            for rtr in (0, 1) for fa in ("on", "off")]


def variants_of_peers(threads):
    """By peer: the builds and flags of which the fastest counts."""
    return {"llama.cpp": llama_variants(threads), "ik_llama.cpp": ik_variants(threads),
            "OpenVINO GenAI": [OpenVino(threads)]}
