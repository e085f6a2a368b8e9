"""HTTP/1.1 as bytes: sends anything, reads every answer strictly, and says what is wrong with one.

A library of this folder's tests: no usage of its own, no exit codes. http.client would correct or refuse what
the tests have to send, and would hide what the server wrongly sends.
"""
import json
import re
import select
import socket

ANSWER_LIMIT_S = 180  # far beyond every limit of the server: whoever waits so long was forgotten
LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete", "response.failed", "error")
TYPES = {408: "timeout_error", 429: "rate_limit_error", 503: "overloaded_error"}
MESSAGES_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error",
                  413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error"}
CHUNK_LINE = re.compile(rb"[0-9a-fA-F]{1,16}")


class BadAnswer(Exception):
    """The received bytes are no HTTP answer, or not all of one."""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def keeps_alive(self):
        return self.header("Connection").lower() == "keep-alive"


class Wire:
    """One connection. `tiny_buffers`: the kernel holds so little for us that our stalling stalls the server."""

    def __init__(self, port, source="", tiny_buffers=False, limit_s=ANSWER_LIMIT_S):
        self.socket = socket.socket()
        if tiny_buffers:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            # The server's kernel sizes its buffer by the segments that we take.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(limit_s)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""
        self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """False when the server takes no more, which it may do before a bad request is over."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def end_sending(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server was faster

    def is_readable(self, wait_s=0.0):
        return bool(self.input) or bool(select.select([self.socket], [], [], wait_s)[0])

    def _more(self):
        """False at the end."""
        if self.ended:
            return False
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self.input += data
        return bool(data)

    def _until(self, mark, what):
        while mark not in self.input:
            if not self._more():
                raise BadAnswer(f"the connection ended within {what}: {self.input[:200]!r}")
        part, self.input = self.input.split(mark, 1)
        return part

    def _exactly(self, num_bytes, what):
        pieces, missing = [], num_bytes
        while missing > len(self.input):
            pieces.append(self.input)
            missing -= len(self.input)
            self.input = b""
            if not self._more():
                raise BadAnswer(f"the connection ended within {what}, {missing} of {num_bytes} bytes missing")
        pieces.append(self.input[:missing])
        self.input = self.input[missing:]
        return b"".join(pieces)

    def receive(self, is_head=False):
        """The next answer that is not interim; None when the connection ends instead."""
        while True:
            if not self.input and not self._more():
                return None
            status, headers = parse_head(self._until(b"\r\n\r\n", "the head of an answer"))
            if status >= 200:
                answer = Answer(status, headers, b"")
                if not is_head and status not in (204, 304):
                    answer.body = self._body(answer)
                return answer

    def _body(self, answer):
        if answer.header("Transfer-Encoding"):
            return self._chunks()
        if length := answer.header("Content-Length"):
            return self._exactly(int(length), "a body")
        while self._more():
            pass
        body, self.input = self.input, b""
        return body

    def _chunks(self):
        pieces = []
        while True:
            line = self._until(b"\r\n", "a chunk's size")
            if not CHUNK_LINE.fullmatch(line):
                raise BadAnswer(f"no chunk size: {line[:40]!r}")
            size = int(line, 16)
            pieces.append(self._exactly(size, "a chunk"))
            if self._exactly(2, "the end of a chunk") != b"\r\n":
                raise BadAnswer("a chunk does not end where it says")
            if size == 0:
                return b"".join(pieces)


def parse_head(head):
    first, *lines = head.decode("latin-1").split("\r\n")
    if not (match := re.fullmatch(r"HTTP/1\.1 (\d{3}) [^\r\n]+", first)):
        raise BadAnswer(f"no status line: {first[:80]!r}")
    headers = []
    for line in lines:
        name, colon, value = line.partition(": ")
        if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name):
            raise BadAnswer(f"no header: {line[:80]!r}")
        headers.append((name, value))
    return int(match[1]), headers


def request_bytes(method, path, body=b"", headers=()):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def strict_json(data):
    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def message_problems(message):
    one_line = isinstance(message, str) and re.fullmatch(r"[^\x00-\x1f\x7f]+", message)
    return [] if one_line else [f"message {message!r} is not one line"]


def messages_error_problems(status, document):
    """The same in the form of Anthropic's clients."""
    if list(document) != ["type", "error"] or list(document["error"]) != ["type", "message"]:
        return [f"no error of /v1/messages: {document}"]
    wanted = MESSAGES_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    found = document["error"]["type"]
    return message_problems(document["error"]["message"]) + (
        [] if found == wanted else [f"type {found} with status {status}"])


def error_problems(status, document):
    """The fault that keeps `document` from being the error that a client may expect with that status."""
    if isinstance(document, dict) and document.get("type") == "error":
        return messages_error_problems(status, document)
    if not isinstance(document, dict) or list(document) != ["error"] or not isinstance(document["error"], dict):
        return ["no {error: {...}}"]
    error = document["error"]
    if list(error) != ["message", "type", "param", "code"]:
        return [f"members {list(error)}"]
    problems = []
    wanted = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if error["type"] != wanted:
        problems.append(f"type {error['type']} with status {status}")
    problems += message_problems(error["message"])
    for name, pattern in (("param", r"[^\x00-\x1f\x7f]{1,400}"), ("code", r"[a-z0-9_]+")):
        value = error[name]
        if value is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            problems.append(f"{name} {value!r}")
    return problems


def named_stream_problems(events):
    """The same of a stream whose events have names, which their JSON repeats; the name of the last tells the end."""
    for event in events:
        name, _, data = event.partition(b"\n")
        if not name.startswith(b"event: ") or not data.startswith(b"data: ") or b"\n" in data:
            return [f"no named event: {event[:80]!r}"]
        if strict_json(data[6:])["type"].encode() != name[7:]:
            return [f"an event of two names: {event[:80]!r}"]
    last = events[-1].partition(b"\n")[0][7:].decode()
    return [] if last in LAST_EVENTS else [f"a stream that ends with {last}"]


def stream_problems(body):
    """The fault of a body that is no whole stream: events of JSON, then [DONE] or the one error of an overload."""
    if not body.endswith(b"\n\n"):
        return ["a stream without its end"]
    events = [event for event in body[:-2].split(b"\n\n") if event != b": ping"]
    if events and events[0].startswith(b"event: "):
        return named_stream_problems(events)
    for event in events:
        if not event.startswith(b"data: ") or b"\n" in event:
            return [f"no event: {event[:80]!r}"]
    last = events[-1][6:] if events else b""
    documents = [strict_json(event[6:]) for event in events[:-1]]
    if any("error" in document for document in documents):
        return ["an error that does not end the stream"]
    if last == b"[DONE]":
        return []
    return error_problems(503, strict_json(last)) if last.startswith(b'{"error"') else ["a stream without [DONE]"]


def answer_problems(answer, is_head=False):
    """Faults that no answer may have, whatever was asked."""
    kind = answer.header("Content-Type")
    try:
        if answer.status in (429, 503) and not re.fullmatch(r"[1-9]|[1-5]\d|60", answer.header("Retry-After")):
            return [f"Retry-After {answer.header('Retry-After')!r} with status {answer.status}"]
        if is_head or answer.status == 204:
            return []
        if kind.startswith("text/event-stream"):
            return stream_problems(answer.body)
        if answer.status == 200 and kind.startswith("text/plain"):
            return []
        if kind != "application/json":
            return [f"Content-Type {kind!r}"]
        document = strict_json(answer.body)
        return error_problems(answer.status, document) if answer.status >= 400 else []
    except ValueError as error:
        return [f"{error}: {answer.body[:200]!r}"]
