"""The cases through the package `anthropic`."""
import anthropic

from answer import Answer, Refused
from openai_client import in_signature
from protocols import check, of_message, of_message_events


class Client:
    blind = frozenset()

    def __init__(self, server, model, key):
        self.client = anthropic.Anthropic(base_url=server.url, api_key=key or "none", max_retries=0, timeout=300)
        self.calls = {"messages": self.client.messages.create, "count_tokens": self.client.messages.count_tokens}

    def cannot(self, case):
        if case.endpoint not in self.calls:
            return f"has no call for {case.endpoint}"
        if case.key == "":
            return "always sends a key"
        return None

    def ask(self, endpoint, request, streamed):
        call = self.calls[endpoint]
        try:
            answer = call(**in_signature(call, request), **({"stream": True} if streamed else {}))
            if not streamed:
                check(answer._request_id.startswith("req_"), answer._request_id)
            if endpoint == "count_tokens":
                return Answer([answer.model_dump()], False)
            if streamed:
                return of_message_events([event.model_dump() for event in answer])
            return of_message(answer.model_dump())
        except anthropic.APIStatusError as error:
            check(error.request_id.startswith("req_"), error.request_id)
            kinds = [kind.__name__ for kind in type(error).__mro__]
            raise Refused(error.status_code, error.body["error"], kinds, error.response.headers.get("Retry-After"),
                          ) from None
