"""The cases over one WebSocket (package `websockets`), several at a time."""
import itertools
import json
import queue
import threading

import websockets.exceptions
import websockets.sync.client

from answer import Refused
from raw_client import PATHS, TIME_LIMIT_S, answer_of_events, answer_of_whole


class Client:
    blind = frozenset()

    def __init__(self, server, model, key):
        self.url = f"ws://127.0.0.1:{server.port}/v1/stream"
        self.headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        self.ids, self.waiting = itertools.count(), {}
        self.lock, self.connection = threading.Lock(), None

    def cannot(self, case):
        return None if case.endpoint in PATHS else f"has no path for {case.endpoint}"

    def connect(self):
        with self.lock:
            if self.connection is None:
                try:
                    self.connection = websockets.sync.client.connect(
                        self.url, additional_headers=self.headers, max_size=None, compression=None)
                except websockets.exceptions.InvalidStatus as error:
                    response = error.response
                    raise Refused(response.status_code, json.loads(response.body)["error"],
                                  retry_after=response.headers.get("Retry-After")) from None
                threading.Thread(target=self.dispatch, daemon=True).start()

    def dispatch(self):
        """Passes each message to the thread that waits for its id; None to all when the connection ends."""
        try:
            for text in self.connection:
                message = json.loads(text)
                self.waiting[message["id"]].put(message)
        except websockets.exceptions.ConnectionClosed:
            pass
        for messages in list(self.waiting.values()):
            messages.put(None)

    def ask(self, endpoint, request, streamed):
        self.connect()
        name = f"case {next(self.ids)}"
        messages = self.waiting[name] = queue.Queue()
        self.connection.send(json.dumps({"id": name, "path": PATHS[endpoint],
                                         "body": request | ({"stream": True} if streamed else {})}))
        first = next_of(messages)
        if first["status"] != 200:
            raise Refused(first["status"], first["body"]["error"], retry_after=first["headers"].get("Retry-After"))
        if not streamed:
            return answer_of_whole(endpoint, first["body"])
        assert "body" not in first, first
        events = []
        while "event" in (message := next_of(messages)):
            events.append(message["event"])
        assert message == {"id": name, "end": "complete"}, message
        return answer_of_events(endpoint, events)


def next_of(messages):
    message = messages.get(timeout=TIME_LIMIT_S)
    assert message is not None, "the connection has ended"
    return message
