"""Kvasir in this process: models on CPUs, many requests at once, no server.

    with kvasir.LLM("smollm2:135m") as llm:
        print(llm.chat([{"role": "user", "content": "Name three primary colours."}], temperature=0).text)
"""
from ._kvasir import version as __version__
from .errors import Error, InternalError, LimitError, MachineError, ModelError, UnavailableError, UsageError
from .llm import LLM, Conversation, Prompt, pull
from .parameters import RequestOptions, SamplingParams, Settings
from .results import Answer, Choice, Cost, ModelInfo, Piece, PositionLogprobs, Score, TokenLogprob, Usage
from .stream import Stream

__all__ = [
    "LLM", "Answer", "Choice", "Conversation", "Cost", "Error", "InternalError", "LimitError", "MachineError",
    "ModelError", "ModelInfo", "Piece", "PositionLogprobs", "Prompt", "RequestOptions", "SamplingParams", "Score",
    "Settings", "Stream", "TokenLogprob", "UnavailableError", "Usage", "UsageError", "__version__", "pull",
]
