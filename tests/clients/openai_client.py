"""The cases through the package `openai`."""
import inspect

import openai

from answer import Answer, Refused
from protocols import of_response, of_response_events


def refused(error):
    """A Refused from an exception of openai's, or of a package that is built on it."""
    body = error.body if isinstance(error.body, dict) else {}
    kinds = [kind.__name__ for kind in type(error).__mro__]
    response = getattr(error, "response", None)
    return Refused(error.status_code, body, kinds, response.headers.get("Retry-After") if response else None)


def in_signature(function, request):
    """The fields that a call has arguments for, and the others for `extra_body`."""
    names = inspect.signature(function).parameters
    extra = {name: value for name, value in request.items() if name not in names}
    known = {name: value for name, value in request.items() if name in names}
    return known | ({"extra_body": extra} if extra else {})


class Client:
    blind = frozenset()

    def __init__(self, server, model, key):
        self.client = openai.OpenAI(base_url=server.url + "/v1", api_key=key or "none", max_retries=0)
        self.calls = {"chat": self.client.chat.completions.create, "completions": self.client.completions.create,
                      "embeddings": self.client.embeddings.create, "responses": self.client.responses.create,
                      "input_tokens": self.client.responses.input_tokens.count}

    def cannot(self, case):
        if case.endpoint not in (*self.calls, "models"):
            return f"has no call for {case.endpoint}"
        if case.key == "":
            return "always sends a key"
        return None

    def ask(self, endpoint, request, streamed):
        try:
            if endpoint == "models":
                models = self.client.models
                return Answer([(models.retrieve(request["id"]) if request else models.list()).model_dump()], False)
            call = self.calls[endpoint]
            answer = call(**in_signature(call, request), **({"stream": True} if streamed else {}))
            if endpoint == "responses":
                return (of_response_events([event.model_dump() for event in answer]) if streamed
                        else of_response(answer.model_dump()))
            if not streamed:
                return Answer([answer.model_dump(exclude_unset=True, warnings=False)], False)
            return Answer([chunk.model_dump(exclude_unset=True) for chunk in answer], True)
        except openai.APIStatusError as error:
            raise refused(error) from None
