"""A model of two blocks that knows a small language, and windows of it. One thread, so that sums have one order."""
from __future__ import annotations

import os
import pathlib
import subprocess

import torch

from kvasir import train

ROOT = pathlib.Path(__file__).resolve().parents[3]
LLAMA = ROOT / "tests" / "cases" / "models" / "llama-f32.gguf"
KVASIR = os.environ.get("KVASIR_BINARY", str(ROOT / "build" / "release" / "bin" / "kvasir"))
torch.set_num_threads(1)


def fresh_model() -> train.Llama:
    return train.load(LLAMA)


def windows(count: int = 48, length: int = 32) -> torch.Tensor:
    """Token ids in which what comes next follows from what was, mostly."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, 60, (count, length), generator=generator)
    for place in range(1, length):
        ids[:, place] = torch.where(ids[:, place] % 4 == 0, ids[:, place], 3 + (ids[:, place - 1] * 7 + 5) % 57)
    return ids


def same_bits(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


def quantize(source: pathlib.Path, out: pathlib.Path, type: str, *flags: str) -> pathlib.Path:
    command = [KVASIR, "quantize", str(source), str(out), "--type", type, "--no-verify", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


class Stopped(Exception):
    pass


class StopAfter:
    """A progress callback that stops a run after so many steps, once for each number."""

    def __init__(self, *steps: int) -> None:
        self._steps, self._count = list(steps), 0

    def __call__(self, *told: object) -> None:
        self._count += 1
        if self._steps and self._count == self._steps[0]:
            self._steps.pop(0)
            raise Stopped
