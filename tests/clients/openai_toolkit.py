"""The package openai: calls of tools in every tool_choice, and typed objects, through chats and responses."""
import json

import openai

import demands
from demands import CHOICES, ENOUGH_TOKENS, Person, check_calls, check_person
from weather import check, equal


class Chat:
    """client.chat.completions"""

    def __init__(self, client, model):
        self.api = client.chat.completions
        self.common = {"model": model, "max_tokens": ENOUGH_TOKENS, "temperature": 0}

    def ask(self, choice, is_streamed, **more):
        """The text, and the calls."""
        asked = dict(messages=[{"role": "user", "content": demands.QUESTION}], tools=demands.chat_tools(strict=True),
                     tool_choice=demands.chat_choice(choice), parallel_tool_calls=False) | self.common | more
        if not is_streamed:
            message = self.api.create(**asked).choices[0].message
            return message.content, [(c.function.name, c.function.arguments) for c in message.tool_calls or []]
        text, calls = "", {}
        for chunk in self.api.create(stream=True, **asked):
            for part in chunk.choices:
                text += part.delta.content or ""
                for piece in part.delta.tool_calls or []:
                    call = calls.setdefault(piece.index, ["", ""])
                    call[0] += piece.function.name or ""
                    call[1] += piece.function.arguments or ""
        return text, [tuple(call) for call in calls.values()]

    def person(self, is_streamed):
        asked = {"messages": [{"role": "user", "content": demands.ABOUT_PERSON}], "response_format": Person} | self.common
        if not is_streamed:
            return self.api.parse(**asked).choices[0].message.parsed
        with self.api.stream(**asked) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion().choices[0].message.parsed

    def parsed_call(self):
        """Arguments as the object that the tool was made from."""
        answer = self.api.parse(messages=[{"role": "user", "content": demands.ABOUT_PERSON}],
                                tools=[openai.pydantic_function_tool(Person)], tool_choice="required",
                                parallel_tool_calls=False, **self.common)
        call, = answer.choices[0].message.tool_calls
        return call.function.parsed_arguments


class Responses:
    """client.responses"""

    def __init__(self, client, model):
        self.api = client.responses
        self.common = {"model": model, "max_output_tokens": ENOUGH_TOKENS, "temperature": 0}

    def ask(self, choice, is_streamed, **more):
        tools = [{"type": "function", **tool["function"]} for tool in demands.chat_tools(strict=True)]
        asked = dict(input=demands.QUESTION, tools=tools, tool_choice=demands.responses_choice(demands.chat_choice(choice)),
                     parallel_tool_calls=False) | self.common | more
        if not is_streamed:
            return self.read(self.api.create(**asked))
        arguments, response = {}, None
        for event in self.api.create(stream=True, **asked):
            if event.type == "response.function_call_arguments.delta":
                arguments[event.output_index] = arguments.get(event.output_index, "") + event.delta
            if event.type in ("response.completed", "response.incomplete"):
                response = event.response
        text, calls = self.read(response)
        equal("the deltas together", list(arguments.values()), [call[1] for call in calls])
        return text, calls

    @staticmethod
    def read(response):
        return response.output_text, [(i.name, i.arguments) for i in response.output if i.type == "function_call"]

    def person(self, is_streamed):
        asked = {"input": demands.ABOUT_PERSON, "text_format": Person} | self.common
        if not is_streamed:
            return self.api.parse(**asked).output_parsed
        with self.api.stream(**asked) as stream:
            for _ in stream:
                pass
            return stream.get_final_response().output_parsed

    def parsed_call(self):
        answer = self.api.parse(input=demands.ABOUT_PERSON, tools=[openai.pydantic_function_tool(Person)],
                                tool_choice="required", parallel_tool_calls=False, **self.common)
        call, = [item for item in answer.output if item.type == "function_call"]
        return call.parsed_arguments


def chooses(api, choice, is_streamed):
    text, calls = api.ask(choice, is_streamed)
    check_calls(choice, calls, text)


def calls_beside_form(api, form):
    """A call is demanded, so the form of a text has nothing to say."""
    _, calls = api.ask("required", False, **form)
    check_calls("required", calls)


def checks(server, model):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    schema = json.loads(json.dumps(demands.CITY))
    forms = {"chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}},
             "responses": {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}}}
    for name, api in (("chat", Chat(client, model)), ("responses", Responses(client, model))):
        for is_streamed in (False, True):
            how = f"{name} {'streamed' if is_streamed else 'whole'}"
            for choice in CHOICES:
                yield f"{how} {choice}", lambda api=api, c=choice, s=is_streamed: chooses(api, c, s)
            yield f"{how} person", lambda api=api, s=is_streamed: check_person(api.person(s))
        yield f"{name} parsed call", lambda api=api: check_person(api.parsed_call())
        yield f"{name} a call beside a form", lambda api=api, form=forms[name]: calls_beside_form(api, form)
