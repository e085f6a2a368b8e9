"""Answers of other protocols than OpenAI's chat, brought into its form, which is what the checks look at. What only
these protocols have (the order of a stream's events, names of types) is checked here."""
import json

from answer import Answer


def check(holds, what):
    assert holds, what


def chat_of(message_id, model, choice, usage):
    return {"id": message_id, "model": model, "choices": [{"index": 0} | choice], "usage": usage}


def usage_of_message(usage):
    cached = usage["cache_read_input_tokens"]
    prompt = usage["input_tokens"] + cached
    return {"prompt_tokens": prompt, "completion_tokens": usage["output_tokens"],
            "total_tokens": prompt + usage["output_tokens"], "prompt_tokens_details": {"cached_tokens": cached}}


def call_of_block(index, block):
    return {"index": index, "id": block["id"], "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}


def of_message(message):
    """A whole message of Anthropic's."""
    check(message["type"] == "message", message["type"])
    content = message["content"]
    check(all(block["type"] in ("text", "tool_use") for block in content), content)
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [call_of_block(index, block)
             for index, block in enumerate(block for block in content if block["type"] == "tool_use")]
    check_stop_sequence(message)
    return Answer([chat_of(message["id"], message["model"],
                           {"message": {"role": message["role"], "content": text, "tool_calls": calls},
                            "finish_reason": message["stop_reason"]}, usage_of_message(message["usage"]))], False)


def check_stop_sequence(part):
    named = part["stop_sequence"] is not None
    check(named == (part["stop_reason"] == "stop_sequence"), f"{part['stop_reason']}: {part['stop_sequence']!r}")


class MessageEvents:
    """The events of one message, which must come as a message is built: start, blocks one by one, delta, stop."""

    def __init__(self):
        self.parts, self.block, self.num_blocks, self.num_calls, self.begun, self.ended = [], None, 0, 0, None, False

    def add(self, event):
        check(not self.ended, f"after message_stop: {event}")
        getattr(self, "on_" + event["type"])(event)

    def append(self, delta, finish_reason=None, usage=None):
        part = chat_of(self.begun["id"], self.begun["model"], {"delta": delta, "finish_reason": finish_reason}, usage)
        self.parts.append(part)

    def on_ping(self, event):
        pass

    def on_message_start(self, event):
        check(self.begun is None, "one message_start")
        self.begun = event["message"]
        check(self.begun["content"] == [] and self.begun["stop_reason"] is None, self.begun)
        self.append({"role": self.begun["role"]})

    def on_content_block_start(self, event):
        check(self.block is None and event["index"] == self.num_blocks, event)
        self.block = event["content_block"]
        self.num_blocks += 1
        if self.block["type"] == "tool_use":
            check(self.block["input"] == {}, self.block)
            call = {"index": self.num_calls, "id": self.block["id"], "function": {"name": self.block["name"]}}
            self.num_calls += 1
            self.append({"tool_calls": [call]})

    def on_content_block_delta(self, event):
        check(self.block is not None and event["index"] == self.num_blocks - 1, event)
        delta = event["delta"]
        if self.block["type"] == "text":
            check(delta["type"] == "text_delta", delta)
            self.append({"content": delta["text"]})
        else:
            check(delta["type"] == "input_json_delta", delta)
            self.append({"tool_calls": [{"index": self.num_calls - 1, "function": {"arguments": delta["partial_json"]}}]})

    def on_content_block_stop(self, event):
        check(self.block is not None and event["index"] == self.num_blocks - 1, event)
        self.block = None

    def on_message_delta(self, event):
        check(self.block is None, "a block is still open")
        check_stop_sequence(event["delta"])
        self.append({}, event["delta"]["stop_reason"], usage_of_message(event["usage"]))

    def on_message_stop(self, event):
        self.ended = True


def of_message_events(events):
    message = MessageEvents()
    for event in events:
        message.add(event)
    check(message.ended, "no message_stop")
    return Answer(message.parts, True)
