"""The cases as plain HTTP requests: nothing is hidden, nothing is added."""
import http.client
import json

from answer import Answer, Refused
from protocols import of_message, of_message_events, of_response, of_response_events

TIME_LIMIT_S = 300
PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings",
         "generate": "/v1/generate", "tokenize": "/tokenize", "detokenize": "/detokenize",
         "responses": "/v1/responses", "input_tokens": "/v1/responses/input_tokens",
         "messages": "/v1/messages", "count_tokens": "/v1/messages/count_tokens"}
READ_WHOLE = {"messages": of_message, "responses": of_response}
READ_EVENTS = {"messages": of_message_events, "responses": of_response_events}  # whose events have names


class Client:
    blind = frozenset()  # facts that this client does not show

    def __init__(self, server, model, key):
        self.port, self.model, self.key = server.port, model, key

    def cannot(self, case):
        """Why this client cannot send a case, or None."""
        return None

    def exchange(self, method, path, body):
        """Status, headers and body of the answer."""
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT_S)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def ask(self, endpoint, request, streamed):
        if endpoint == "models":
            path = f"/v1/models/{request['id']}" if request else "/v1/models"
            status, headers, body = self.exchange("GET", path, None)
        else:
            sent = request | ({"stream": True} if streamed else {})
            status, headers, body = self.exchange("POST", PATHS[endpoint], json.dumps(sent))
        if status != 200:
            raise Refused(status, json.loads(body)["error"], retry_after=headers.get("Retry-After"))
        if not streamed:
            assert headers["Content-Type"] == "application/json", headers["Content-Type"]
            return answer_of_whole(endpoint, json.loads(body))
        assert headers["Content-Type"].startswith("text/event-stream"), headers["Content-Type"]
        text = body.decode()
        return answer_of_events(endpoint, named_events(text) if endpoint in READ_EVENTS else events(text))


def answer_of_whole(endpoint, answer):
    return READ_WHOLE[endpoint](answer) if endpoint in READ_WHOLE else Answer([answer], False)


def answer_of_events(endpoint, objects):
    return READ_EVENTS[endpoint](objects) if endpoint in READ_EVENTS else Answer(objects, True)


def events(text):
    """The objects of a stream of server-sent events, which must end with [DONE]."""
    data = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]  # a colon begins a comment
        assert all(line.startswith("data: ") for line in lines), block
        data += [line[len("data: "):] for line in lines]
    assert data.count("[DONE]") == 1 and data[-1] == "[DONE]", f"[DONE] ends a stream, once: {data[-3:]}"
    return [json.loads(item) for item in data[:-1]]


def named_events(text):
    """The objects of a stream whose events have names, which each object repeats as its type."""
    objects = []
    for block in text.strip("\n").split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if not lines:
            continue
        name, data = lines
        assert name.startswith("event: ") and data.startswith("data: "), block
        objects.append(json.loads(data[len("data: "):]))
        assert objects[-1]["type"] == name[len("event: "):], block
    return objects
