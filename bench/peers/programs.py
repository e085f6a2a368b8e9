"""The programs that are compared, each as a function from a cell to one measured rate.

A cell is one kind of work: a prompt of n tokens, or `batch` streams that each generate n tokens behind `depth` others.
Every call is one process: load, warm up as the program's own benchmark does, one counted run.
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


@dataclasses.dataclass(frozen=True)
class Cell:
    kind: str  # "prompt" or "generation"
    tokens: int
    depth: int = 0
    batch: int = 1

    def __str__(self):
        if self.kind == "prompt":
            return f"pp{self.tokens}"
        return f"tg{self.tokens}" + (f" at {self.depth}" if self.depth else "") + (
            f" x{self.batch}" if self.batch > 1 else "")


@dataclasses.dataclass(frozen=True)
class Finished:
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int


def run(command, **kwargs):
    """The finished process with wall time and peak resident memory; an error ends the comparison."""
    command = [str(part) for part in command]
    out, err = (os.memfd_create(name) for name in ("out", "err"))
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, **kwargs)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    texts = []
    for stream in (out, err):
        os.lseek(stream, 0, os.SEEK_SET)
        with os.fdopen(stream, "rb") as file:
            texts.append(file.read().decode(errors="replace"))
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: {texts[1].strip()[-400:]}")
    return Finished(*texts, seconds, usage.ru_maxrss * 1024)


class Kvasir:
    name = "kvasir"

    def __init__(self, threads, flags=()):
        self.binary, self.threads, self.flags = ROOT / "build" / "release" / "bin" / "kvasir", threads, flags

    def rate(self, model, cell):
        work = ["--prompt", cell.tokens, "--gen", 0] if cell.kind == "prompt" else [
            "--prompt", 0, "--gen", cell.tokens, "--batch", cell.batch,
            "--depth", cell.depth if cell.batch == 1 else BATCH_DEPTH]
        done = run([self.binary, "bench", model, "--repeat", 1, "--threads", self.threads, "--json", "--quiet",
                    *work, *self.flags])
        return json.loads(done.stdout)["results"][0]["tokens_per_s"]["median"]

    def first_token(self, model, prompt_file):
        """Process start to the end of a run that gives one token."""
        return run([self.binary, "run", model, "--raw", "--file", prompt_file, "--max-tokens", 1, "--temperature", 0,
                    "--threads", self.threads, "--quiet"])

    def limits(self):
        return json.loads(run([self.binary, "doctor", "--json", "--threads", self.threads]).stdout)["limits"]


class LlamaCpp:
    """One build of llama.cpp or of its fork, with one set of flags."""

    def __init__(self, name, folder, threads, bench_flags=(), batched_flags=()):
        self.name, self.folder, self.threads = name, PEERS / "bin" / folder, threads
        self.bench_flags, self.batched_flags = bench_flags, batched_flags

    def rate(self, model, cell):
        return self._batched(model, cell) if cell.batch > 1 else self._single(model, cell)

    def _single(self, model, cell):
        if cell.kind == "prompt":
            work = ["-p", cell.tokens, "-n", 0]
        else:
            work = ["-p", 0, "-n", cell.tokens] if cell.depth == 0 else self._behind(cell)
        done = run([self.folder / "llama-bench", "-m", model, "-t", self.threads, "-r", 1, "-o", "json", *work,
                    *self.bench_flags])
        rows = json.loads(done.stdout[done.stdout.index("["):done.stdout.rindex("]") + 1])
        return rows[-1]["avg_ts"]

    def _behind(self, cell):
        return ["-p", 0, "-n", cell.tokens, "-d", cell.depth]

    def _batched(self, model, cell):
        context = cell.batch * (BATCH_DEPTH + cell.tokens)
        done = run([self.folder / "llama-batched-bench", "-m", model, "-t", self.threads, "-c", context, "-b", 2048,
                    "-npp", BATCH_DEPTH, "-ntg", cell.tokens, "-npl", cell.batch, *self.batched_flags])
        rows = re.findall(r"^\|\s*\d+ \|\s*\d+ \|\s*\d+ \|.*$", done.stdout + done.stderr, re.MULTILINE)
        return float(rows[-1].split("|")[8])

    def first_token(self, model, prompt_file):
        return run([self.folder / "llama-completion", "-m", model, "-f", prompt_file, "-n", 1, "--temp", 0, "-no-cnv",
                    "-t", self.threads, "--no-display-prompt"])


class IkLlama(LlamaCpp):
    def _behind(self, cell):
        return ["-p", 0, "-n", 0, "-gp", f"{cell.depth},{cell.tokens}"]


def llama_variants(threads):
    return [LlamaCpp(f"llama.cpp {build}, flash attention {fa}", f"llama-{build}", threads, ["-fa", fa], ["-fa", fa])
            for build in ("native", "nofp16") if (PEERS / "bin" / f"llama-{build}").exists() for fa in ("on", "off")]


def ik_variants(threads):
    return [IkLlama(f"ik_llama.cpp, repack {rtr}, flash attention {fa}", "ik", threads, ["-rtr", rtr, "-fa", fa],
                    (["-rtr"] if rtr else []) + (["-fa"] if fa else []))
            for rtr in (0, 1) for fa in (0, 1)]
