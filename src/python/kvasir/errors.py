"""Errors: one line that names the thing, the limit and the value."""
from __future__ import annotations


class Error(Exception):
    """The engine's message, and `param`: the parameter or setting at fault, or ""."""

    param: str = ""


class UsageError(Error, ValueError):
    """A wrong parameter, setting, type or value, or a closed LLM."""


def usage_error(message: str, param: str) -> UsageError:
    """Not a constructor of the class: the engine makes errors where no code of Python's may run (python_error.cc)."""
    error = UsageError(message)
    error.param = param
    return error


def wrong_type(name: str, wanted: str, value: object) -> UsageError:
    kind = "None" if value is None else type(value).__name__
    return usage_error(f"{name}: must be {wanted}, got {kind}", name)


class ModelError(Error):
    """A model that is missing, broken or not supported."""


class LimitError(Error):
    """Well-formed, but beyond a limit, such as the model's context."""


class MachineError(Error):
    """The machine cannot: memory, permission, disk."""


class UnavailableError(Error):
    """Not now: the engine ends, or its queue is full. `retry_after_s`: when it may be worth another try; 0: not known."""

    retry_after_s: int = 0


class InternalError(Error):
    """Kvasir's own fault, contained to one request."""
