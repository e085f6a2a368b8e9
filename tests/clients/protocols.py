"""Answers of other protocols than OpenAI's chat, brought into its form, which is what the checks look at. The
parts that only these protocols have (the order of a stream's events, names of types) are checked here."""
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


def usage_of_response(usage):
    return {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"],
            "total_tokens": usage["total_tokens"],
            "prompt_tokens_details": {"cached_tokens": usage["input_tokens_details"]["cached_tokens"]}}


def text_of_item(item):
    check(item["role"] == "assistant" and len(item["content"]) == 1, item)
    part = item["content"][0]
    check(part["type"] == "output_text" and part["annotations"] == [], part)
    return part["text"], part["logprobs"]


def end_of_response(response):
    """Why it ended, as chats say it."""
    check(response["object"] == "response" and response["error"] is None, response)
    completed_at = response["completed_at"]
    check((completed_at is not None) == (response["status"] == "completed"), completed_at)
    check(completed_at is None or completed_at >= response["created_at"], completed_at)
    if response["status"] == "incomplete":
        check(response["incomplete_details"]["reason"] == "max_output_tokens", response["incomplete_details"])
        return "length"
    check(response["status"] == "completed" and response["incomplete_details"] is None, response["status"])
    return "tool_calls" if any(item["type"] == "function_call" for item in response["output"]) else "stop"


def of_response(response):
    """A whole response of OpenAI's Responses API."""
    text, logprobs, calls = "", [], []
    for item in response["output"]:
        if item["type"] == "message":
            piece, more = text_of_item(item)
            text, logprobs = text + piece, logprobs + more
        else:
            check(item["type"] == "function_call" and item["status"] == "completed", item)
            calls.append({"index": len(calls), "id": item["call_id"],
                          "function": {"name": item["name"], "arguments": item["arguments"]}})
    choice = {"message": {"role": "assistant", "content": text, "tool_calls": calls},
              "logprobs": {"content": logprobs} if logprobs else None, "finish_reason": end_of_response(response)}
    answer = Answer([chat_of(response["id"], response["model"], choice, usage_of_response(response["usage"]))], False)
    answer.objects[0]["settings"] = {name: response[name] for name in ("instructions", "max_output_tokens", "metadata",
                                                                      "temperature", "tool_choice", "store")}
    return answer


class ResponseEvents:
    """The events of one response: numbered, items one by one, each of them whole in the end and in the last event."""

    def __init__(self):
        self.parts, self.items, self.open, self.text, self.logprobs = [], [], None, "", []
        self.num_calls, self.response, self.last = 0, None, None

    def add(self, number, event):
        check(event["sequence_number"] == number and self.last is None, event)
        if event["type"] in ("response.created", "response.in_progress"):
            check(number == ("response.created", "response.in_progress").index(event["type"]), event)
            self.response = event["response"]
            check(self.response["status"] == "in_progress" and self.response["output"] == [], self.response)
        elif event["type"] in ("response.completed", "response.incomplete"):
            self.end(event["response"])
        else:
            check(event["output_index"] == len(self.items), event)
            getattr(self, "on_" + event["type"].removeprefix("response.").replace(".", "_"))(event)

    def append(self, delta, logprobs=None, finish_reason=None, usage=None):
        choice = {"delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        self.parts.append(chat_of(self.response["id"], self.response["model"], choice, usage))

    def on_output_item_added(self, event):
        check(self.open is None, event)
        self.open, self.text, self.logprobs = event["item"], "", []
        if self.open["type"] == "message":
            check(self.open["content"] == [], self.open)
            self.append({"role": "assistant"})
            return
        call = {"index": self.num_calls, "id": self.open["call_id"], "function": {"name": self.open["name"]}}
        check(self.open["arguments"] == "", self.open)
        self.append({"tool_calls": [call]})

    def on_content_part_added(self, event):
        check(event["item_id"] == self.open["id"] and event["part"]["text"] == "", event)

    def on_output_text_delta(self, event):
        check(event["item_id"] == self.open["id"], event)
        self.text += event["delta"]
        self.logprobs += event["logprobs"]
        self.append({"content": event["delta"]}, {"content": event["logprobs"]} if event["logprobs"] else None)

    def on_output_text_done(self, event):
        check(event["text"] == self.text, event)

    def on_content_part_done(self, event):
        check(event["part"]["text"] == self.text, event)

    def on_function_call_arguments_delta(self, event):
        check(event["item_id"] == self.open["id"], event)
        self.text += event["delta"]
        self.append({"tool_calls": [{"index": self.num_calls, "function": {"arguments": event["delta"]}}]})

    def on_function_call_arguments_done(self, event):
        check(event["arguments"] == self.text and event["name"] == self.open["name"], event)
        self.num_calls += 1

    def on_output_item_done(self, event):
        item = event["item"]
        check(item["id"] == self.open["id"], event)
        if item["type"] == "message":
            text, logprobs = text_of_item(item)
            check(text == self.text and len(logprobs) >= len(self.logprobs), item)
        self.items.append(item)
        self.open = None

    def end(self, response):
        check(self.open is None and response["output"] == self.items, response["output"])
        check(response["id"] == self.response["id"], response["id"])
        self.last = response
        if not any(item["type"] == "message" for item in self.items):
            self.append({"role": "assistant"})
        self.append({}, None, end_of_response(response), usage_of_response(response["usage"]))


def of_response_events(events):
    response = ResponseEvents()
    for number, event in enumerate(events):
        response.add(number, event)
    check(response.last is not None, "no last event")
    return Answer(response.parts, True)
