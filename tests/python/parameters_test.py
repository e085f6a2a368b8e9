"""The names that type checkers know are those that the engine knows."""
from __future__ import annotations

import ast
import pathlib
import re
import typing

import kvasir
from kvasir import _kvasir

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "kvasir" / "sampling_params.h"


def names_of(parameters: type) -> set[str]:
    return set(typing.get_type_hints(parameters))


def test_settings_are_those_of_the_module() -> None:
    assert names_of(kvasir.Settings) == set(_kvasir.setting_names())


def test_parameters_are_those_of_the_module() -> None:
    assert names_of(kvasir.RequestOptions) == set(_kvasir.option_names()) - {"pooling", "dimensions"}


def test_every_sampling_parameter_of_the_engine_can_be_said() -> None:
    body = HEADER.read_text(encoding="utf-8").split("struct SamplingParams {")[1].split("};")[0]
    members = re.findall(r"^  [\w:<>, ]+ (\w+)(?: = [^;]+)?;", re.sub(r"//.*", "", body), re.MULTILINE)
    members.remove("shown_special_tokens")  # for servers, which read marks of calls
    assert len(members) == 22
    assert set(members) == names_of(kvasir.SamplingParams)


def test_the_stub_names_what_the_module_has() -> None:
    stub = ast.parse(pathlib.Path(kvasir.__file__).with_name("_kvasir.pyi").read_text(encoding="utf-8"))
    said: dict[str, set[str]] = {"": set()}
    for node in stub.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            said[""].add(node.name)
        if isinstance(node, ast.ClassDef):
            said[node.name] = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said[""].add(node.target.id)
    found = {"": {name for name in vars(_kvasir) if not name.startswith("_")}}
    for name in said:
        if name:
            found[name] = {member for member in vars(getattr(_kvasir, name)) if not member.startswith("_")}
    assert found == said
