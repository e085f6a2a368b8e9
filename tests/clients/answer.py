"""A client's answer, in one form: an Answer, made from one object or from the chunks of a stream, or Refused."""
import base64
import json
from array import array


class Refused(Exception):
    """An error answer as a client shows it. `error` has those of message, type, param and code that the client keeps,
    `kinds` the names of the exception's classes (none for raw HTTP)."""

    def __init__(self, status, error, kinds=(), retry_after=None):
        super().__init__(f"{status} {'/'.join(kinds[:1])} {json.dumps(error)}")
        self.status, self.error, self.kinds, self.retry_after = status, error, kinds, retry_after


class Choice:
    def __init__(self, index):
        self.index = index
        self.text, self.tool_calls = "", []
        self.pieces, self.roles, self.finish_reasons = [], [], []
        self.logprobs = None

    def add_text(self, text):
        if text:
            self.text += text
            self.pieces.append(text)

    def add_logprobs(self, logprobs):
        """Lists of a chunk's follow those that came before."""
        if logprobs is None:
            return
        if self.logprobs is None:
            self.logprobs = {}
        for name, value in logprobs.items():
            if isinstance(value, list):
                self.logprobs[name] = self.logprobs.get(name, []) + value

    def add_tool_calls(self, calls):
        for place, call in enumerate(calls or []):
            at = call.get("index", place) if call.get("index") is not None else place
            while len(self.tool_calls) <= at:
                self.tool_calls.append({"id": None, "name": "", "arguments": ""})
            known, function = self.tool_calls[at], call.get("function") or {}
            known["id"] = call.get("id") or known["id"]
            known["name"] += function.get("name") or ""
            known["arguments"] += function.get("arguments") or ""

    def add(self, part):
        message = part.get("message") or part.get("delta") or {}
        self.add_text(part.get("text") or message.get("content"))
        if message.get("role"):
            self.roles.append(message["role"])
        self.add_tool_calls(message.get("tool_calls"))
        self.add_logprobs(part.get("logprobs"))
        if part.get("finish_reason"):
            self.finish_reasons.append(part["finish_reason"])

    @property
    def finish_reason(self):
        return self.finish_reasons[0] if self.finish_reasons else None


class Answer:
    def __init__(self, objects, streamed):
        self.objects, self.streamed = objects, streamed
        self.usages = [o["usage"] for o in objects if o.get("usage")]
        self.by_index = {}
        for part in (part for o in objects for part in o.get("choices") or []):
            index = part.get("index") or 0
            self.by_index.setdefault(index, Choice(index)).add(part)

    @property
    def choices(self):
        return [self.by_index[index] for index in sorted(self.by_index)]

    @property
    def texts(self):
        return [choice.text for choice in self.choices]

    @property
    def usage(self):
        return self.usages[-1] if self.usages else None

    @property
    def embeddings(self):
        return [floats(item["embedding"]) for item in self.objects[0]["data"]]


def floats(embedding):
    """32-bit floats, from a list or from base64."""
    if isinstance(embedding, str):
        return array("f", base64.b64decode(embedding))
    return array("f", embedding)
