"""Kvasir in this process: models on CPUs, many requests at once, no server.

    with kvasir.LLM("smollm2:135m") as llm:
        print(llm.chat([{"role": "user", "content": "Name three primary colours."}], temperature=0).text)
"""
import atexit as _atexit

from ._kvasir import end_all as _end_all
from ._kvasir import version as __version__
from .errors import Error, InternalError, LimitError, MachineError, ModelError, UnavailableError, UsageError
from .llm import LLM, Conversation, Prompt, pull
from .parameters import RequestOptions, SamplingParams, Settings
from .results import Answer, Choice, Cost, ModelInfo, Piece, PositionLogprobs, Ranked, Score, TokenLogprob, Usage
from .stream import Stream

__all__ = [
    "LLM", "Answer", "Choice", "Conversation", "Cost", "Error", "InternalError", "LimitError", "MachineError",
    "ModelError", "ModelInfo", "Piece", "PositionLogprobs", "Prompt", "Ranked", "RequestOptions", "SamplingParams", "Score",
    "Settings", "Stream", "TokenLogprob", "UnavailableError", "Usage", "UsageError", "__version__", "pull",
]

# The engines' threads, and those that wait for them, must be done before the interpreter is.
_atexit.register(_end_all)
