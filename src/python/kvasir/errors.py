"""What goes wrong: one line that names the thing, the limit and the value."""
from __future__ import annotations


class Error(Exception):
    """The engine's message, and `param`: the parameter or setting at fault, or ""."""

    param: str = ""

    def __init__(self, message: str = "", param: str = "") -> None:
        super().__init__(message)
        self.param = param


class UsageError(Error, ValueError):
    """A wrong parameter, setting, type or value, or a closed LLM."""


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
