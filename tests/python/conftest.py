"""Models for the tests of the package: the tiny ones of this checkout, and smollm2:135m where it was pulled."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import kvasir

MODELS = pathlib.Path(__file__).resolve().parents[1] / "cases" / "models"
LLAMA = str(MODELS / "llama-f32.gguf")  # byte-level tokenizer, chat template
GEMMA = str(MODELS / "gemma3-q5_0.gguf")  # SentencePiece, adds BOS, sliding windows, no chat template
NO_TOKENIZER = str(MODELS / "no-tokenizer.gguf")
TIME_LIMIT_S = 120


@pytest.fixture(scope="session")
def llm() -> Iterator[kvasir.LLM]:
    with kvasir.LLM(LLAMA, threads=2) as model:
        yield model


@pytest.fixture(scope="session")
def gemma() -> Iterator[kvasir.LLM]:
    with kvasir.LLM(GEMMA, threads=1) as model:
        yield model


def wait_until_idle(llm: kvasir.LLM) -> dict[str, int]:
    """The engine's counts once nothing runs; fails when that takes longer than it may."""
    end = time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < end:
        stats = llm.stats()
        if stats["num_running"] == stats["num_waiting"] == 0:
            return stats
        time.sleep(0.001)
    raise AssertionError(f"still at work: {llm.stats()}")


def run_script(text: str, *args: str, timeout: float = TIME_LIMIT_S) -> subprocess.CompletedProcess[str]:
    """A Python of its own that runs `text`, with what the package is imported from here."""
    return subprocess.run([sys.executable, "-c", text, *args], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
