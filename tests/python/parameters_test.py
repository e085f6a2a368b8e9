"""The names that type checkers know are those that the engine knows."""
from __future__ import annotations

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
    assert names_of(kvasir.RequestOptions) == set(_kvasir.option_names()) - {"pooling"}


def test_every_sampling_parameter_of_the_engine_can_be_said() -> None:
    body = HEADER.read_text(encoding="utf-8").split("struct SamplingParams {")[1].split("};")[0]
    members = re.findall(r"^  [\w:<>, ]+ (\w+)(?: = [^;]+)?;", re.sub(r"//.*", "", body), re.MULTILINE)
    assert len(members) == 19
    assert set(members) == names_of(kvasir.SamplingParams)
