"""The cases through the package `litellm`, which calls openai's with arguments, answers and errors of its own."""
import ast
import contextlib
import os
import re

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for prices

import litellm
import openai

with contextlib.suppress(ImportError):  # of newer openai, which imports it when the first answer comes: in many threads
    import httpx2  # noqa: F401

from answer import Answer
from checks import number_of_choices
from openai_client import in_signature, refused

CALLS = {"chat": (litellm.completion, "openai/"), "completions": (litellm.text_completion, "text-completion-openai/"),
         "embeddings": (litellm.embedding, "openai/")}


class Client:
    # It makes the last chunk itself, with choices and usage, and keeps of some errors only the message.
    blind = frozenset({"usage_chunk", "error_fields", "retry_after"})

    def __init__(self, server, model, key):
        self.to = {"api_base": server.url + "/v1", "api_key": key or "none", "max_retries": 0}
        litellm.suppress_debug_info = True

    def cannot(self, case):
        if case.endpoint not in CALLS:
            return f"has no call for {case.endpoint}"
        if case.key == "":
            return "always sends a key"
        if "model" not in case.request:
            return "needs the name of a model"
        if case.streamed and number_of_choices(case.request) > 1:
            return "loses the ends of all choices but one in a stream"
        if case.streamed and case.endpoint == "completions" and "logprobs" in case.request:
            return "loses a streamed completion's logprobs"
        if case.endpoint == "embeddings" and "dimensions" in case.request:
            return "takes dimensions only for OpenAI's own models"
        return None

    def ask(self, endpoint, request, streamed):
        call, provider = CALLS[endpoint]
        arguments = in_signature(call, request | {"model": provider + str(request["model"])})
        try:
            answer = call(**arguments, **self.to, **({"stream": True} if streamed else {}))
            if not streamed:
                return Answer([answer.model_dump(warnings=False)], False)
            return Answer([without_made_up_usage(chunk.model_dump()) for chunk in answer], True)
        except openai.APIStatusError as error:
            if error.body is None:
                error.body = body_in(str(error))
            raise refused(error) from None


def without_made_up_usage(chunk):
    """A streamed completion's chunks have a usage of zeros, which the server has not sent."""
    if not (chunk.get("usage") or {}).get("total_tokens"):
        chunk["usage"] = None
    return chunk


def body_in(message):
    """The server's error where litellm has put it into its message, else that message."""
    found = re.search(r"Error code: \d+ - (\{.*\})", message, re.DOTALL)
    return ast.literal_eval(found[1])["error"] if found else {"message": message}
