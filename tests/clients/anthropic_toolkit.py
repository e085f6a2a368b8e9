"""The package anthropic: calls of tools in every tool_choice, and typed objects."""
import json

import anthropic

import demands
from demands import CHOICES, ENOUGH_TOKENS, Person, check_calls, check_person
from weather import check, equal

TOOLS = [{"name": name, "description": description, "input_schema": schema, "strict": True}
         for name, (description, schema) in demands.TOOLS.items()]
# There is no choice of several tools among more.
WORDS = {"auto": {"type": "auto"}, "required": {"type": "any"}, "named": {"type": "tool", "name": "add"},
         "none": {"type": "none"}}


class Messages:
    def __init__(self, client, model):
        self.client = client
        self.common = {"model": model, "max_tokens": ENOUGH_TOKENS, "temperature": 0}

    def ask(self, choice, is_streamed, **more):
        """The message."""
        words = WORDS[choice] if choice == "none" else {**WORDS[choice], "disable_parallel_tool_use": True}
        asked = dict(messages=[{"role": "user", "content": demands.QUESTION}], tools=TOOLS,
                     tool_choice=words) | self.common | more
        asked.setdefault("extra_body", {})["temperature"] = asked.pop("temperature")
        if not is_streamed:
            return self.client.messages.create(**asked)
        pieces = ""
        with self.client.messages.stream(**asked) as stream:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    pieces += event.delta.partial_json
            message = stream.get_final_message()
        inputs = [block.input for block in message.content if block.type == "tool_use"]
        if inputs:
            equal("the deltas together", json.loads(pieces), inputs[0])
        return message

    def person(self, is_streamed):
        asked = {"messages": [{"role": "user", "content": demands.ABOUT_PERSON}], "output_format": Person} | self.common
        asked["extra_body"] = {"temperature": asked.pop("temperature")}
        if not is_streamed:
            return self.client.messages.parse(**asked).parsed_output
        with self.client.messages.stream(**asked) as stream:
            for _ in stream:
                pass
            return stream.get_final_message().parsed_output


def chooses(api, choice, is_streamed):
    message = api.ask(choice, is_streamed)
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    text = "".join(block.text for block in message.content if block.type == "text")
    check_calls(choice, calls, text)
    equal("the end", message.stop_reason == "tool_use", bool(calls))


def goes_on(api, is_streamed):
    """The result of a call that was demanded goes back, and an answer comes."""
    message = api.ask("named", is_streamed)
    call, = [block for block in message.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "7"}]}
    history = [{"role": "user", "content": demands.QUESTION}, {"role": "assistant", "content": message.content},
               {"role": "user", "content": [result]}]
    answer = api.ask("none", is_streamed, messages=history)
    check("an answer", answer.content[0].text)


def runs_tools(api):
    """The package's own loop, which calls a function of Python."""
    seen = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        seen.append(city)
        return "sunny"

    runner = api.client.beta.messages.tool_runner(
        messages=[{"role": "user", "content": demands.QUESTION}], tools=[weather], max_iterations=1,
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        **{name: value for name, value in api.common.items() if name != "temperature"})
    message = runner.until_done()
    check("a call, or an answer that the bound cut", message.stop_reason in ("tool_use", "max_tokens"))


def checks(server, model):
    api = Messages(anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0), model)
    for is_streamed in (False, True):
        how = "streamed" if is_streamed else "whole"
        for choice in CHOICES:
            if choice in WORDS:
                yield f"{how} {choice}", lambda c=choice, s=is_streamed: chooses(api, c, s)
        yield f"{how} a result goes back", lambda s=is_streamed: goes_on(api, s)
        yield f"{how} person", lambda s=is_streamed: check_person(api.person(s))
    yield "the package's loop", lambda: runs_tools(api)
