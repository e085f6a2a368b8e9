"""docs/PYTHON.md: its Python runs from top to bottom, what it prints is what it says, and its C is the example's."""
from __future__ import annotations

import contextlib
import io
import pathlib
import re

import pytest

import kvasir
from conftest import LLAMA

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "smollm2:135m"


def blocks() -> list[tuple[str, str]]:
    """Language and text of each."""
    text = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def is_pulled() -> bool:
    try:
        kvasir.LLM(MODEL, threads=1).close()
    except kvasir.ModelError:
        return False
    return True


def run(code: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/PYTHON.md", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("model", [LLAMA, MODEL], ids=["tiny", "smollm2"])
def test_the_python_runs_and_prints_what_is_said(model: str) -> None:
    if model == MODEL and not is_pulled():
        pytest.skip(f"{MODEL} is not pulled")
    names: dict[str, object] = {}
    printed, num_runs, num_outputs = "", 0, 0
    for language, text in blocks():
        if language == "python":
            code = re.sub(r"^kvasir\.pull.*$", "", text, flags=re.MULTILINE) if model != MODEL else text
            printed = run(code.replace(MODEL, model), names)
            num_runs += 1
        elif language == "text" and model == MODEL:
            assert printed == text
            num_outputs += 1
    assert num_runs >= 7
    assert num_outputs >= 5 or model != MODEL


def test_the_c_is_the_examples() -> None:
    example = (ROOT / "examples" / "c" / "answer.c").read_text(encoding="utf-8")
    parts = [text for language, text in blocks() if language == "c"]
    assert len(parts) == 2
    for part in parts:
        assert part in example


def test_what_it_links_to_is_there() -> None:
    text = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / "docs" / target).exists(), target
