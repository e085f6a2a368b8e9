"""Files that a stopped run goes on from."""
from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import torch

from ..errors import ModelError


def fingerprint_of(*parts: Any) -> str:
    """A hash of tensors, modules' parameters and whatever has a repr: what the run's numbers follow from."""
    digest = hashlib.sha256()
    for part in parts:
        for tensor in _tensors(part):
            digest.update(tensor.detach().contiguous().numpy().data)
        digest.update(b"\0" if isinstance(part, (torch.Tensor, torch.nn.Module)) else repr(part).encode())
    return digest.hexdigest()


def _tensors(part: Any) -> Iterable[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        return [part]
    return list(part.parameters()) if isinstance(part, torch.nn.Module) else []


class Checkpoint:
    """A folder with a file for each name; none where `folder` is None. A file has its name once it is whole. Each names the
    run that it belongs to: another run's files are an error, never a beginning."""

    def __init__(self, folder: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self._folder = None if folder is None else pathlib.Path(folder)
        self._fingerprint = fingerprint
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, state: dict[str, Any]) -> None:
        if self._folder is None:
            return
        unfinished = self._folder / f"{name}.part"
        torch.save({"fingerprint": self._fingerprint, **state}, unfinished)
        unfinished.replace(self._folder / f"{name}.pt")

    def load(self, name: str) -> dict[str, Any] | None:
        """What was saved under the name. ModelError: by a run of another model, other data or other options."""
        path = None if self._folder is None else self._folder / f"{name}.pt"
        if path is None or not path.exists():
            return None
        state: dict[str, Any] = torch.load(path)
        if state["fingerprint"] != self._fingerprint:
            raise ModelError(f"{path}: belongs to a run of another model, other windows or other options")
        return state

    def remove(self, name: str) -> None:
        if self._folder is not None:
            (self._folder / f"{name}.pt").unlink(missing_ok=True)
