"""litellm's providers openai, hosted_vllm and anthropic, with tools; and its calls of one API through another."""
import asyncio
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for prices

import litellm

import demands
import weather
from weather import check, equal

PROVIDERS = {"openai": "/v1", "hosted_vllm": "/v1", "anthropic": ""}
ENOUGH_TOKENS = 400  # for a call with a text of the model's choice
HI = [{"role": "user", "content": "Say hi."}]


class Provider:
    def __init__(self, server, model, name):
        self.to = {"model": f"{name}/{model}", "api_base": server.url + PROVIDERS[name], "api_key": "none"}

    def ask(self, messages, is_streamed):
        answer = litellm.completion(messages=messages, tools=[weather.CHAT_TOOL], temperature=0, stream=is_streamed,
                                    max_tokens=weather.MAX_TOKENS, max_retries=0, **self.to)
        if is_streamed:
            answer = litellm.stream_chunk_builder(list(answer), messages=messages)
        check("usage", answer.usage.completion_tokens > 0)
        return answer.choices[0]

    def answers(self, is_streamed):
        choice = self.ask(HI, is_streamed)
        check("an answer", choice.message.content)
        equal("end", choice.finish_reason, "stop")

    def calls(self, is_streamed):
        messages = [*weather.chat_history(), {"role": "user", "content": weather.QUESTION}]
        choice = self.ask(messages, is_streamed)
        equal("end", choice.finish_reason, "tool_calls")
        found = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
        equal("calls", found, [("weather", weather.ARGUMENTS)])
        messages += [choice.message.model_dump(),
                     {"role": "tool", "tool_call_id": choice.message.tool_calls[0].id, "content": weather.RESULT}]
        equal("answer", self.ask(messages, is_streamed).message.content, weather.ANSWER)

    def demanded(self, is_streamed):
        for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
            answer = litellm.completion(messages=HI, tools=[weather.CHAT_TOOL], tool_choice=choice, temperature=0,
                                        stream=is_streamed, max_tokens=ENOUGH_TOKENS, max_retries=0,
                                        parallel_tool_calls=False, **self.to)
            if is_streamed:
                answer = litellm.stream_chunk_builder(list(answer), messages=HI)
            call, = answer.choices[0].message.tool_calls
            equal("name", call.function.name, "weather")
            check("a city", isinstance(json.loads(call.function.arguments)["city"], str))

    def chooses(self, choice, is_streamed):
        answer = litellm.completion(messages=[{"role": "user", "content": demands.QUESTION}],
                                    tools=demands.chat_tools(strict=True), tool_choice=demands.chat_choice(choice),
                                    temperature=0, stream=is_streamed, max_tokens=ENOUGH_TOKENS, max_retries=0,
                                    parallel_tool_calls=False, **self.to)
        if is_streamed:
            answer = litellm.stream_chunk_builder(list(answer))
        message = answer.choices[0].message
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
        demands.check_calls(choice, calls, message.content)

    def person(self, is_streamed):
        answer = litellm.completion(messages=[{"role": "user", "content": demands.ABOUT_PERSON}], temperature=0,
                                    response_format=demands.Person, stream=is_streamed, max_tokens=ENOUGH_TOKENS,
                                    max_retries=0, **self.to)
        if is_streamed:
            answer = litellm.stream_chunk_builder(list(answer))
        demands.check_person(demands.Person.model_validate_json(answer.choices[0].message.content))

    def responses(self):
        answer = litellm.responses(input="Say hi.", temperature=0, max_output_tokens=weather.MAX_TOKENS, **self.to)
        check("an answer", answer.output[-1].content[0].text)

    def messages(self):
        call = litellm.anthropic.messages.acreate(messages=HI, max_tokens=weather.MAX_TOKENS, **self.to)
        check("an answer", asyncio.run(call)["content"][0]["text"])


def checks(server, model):
    litellm.suppress_debug_info = True
    for name in PROVIDERS:
        provider = Provider(server, model, name)
        for is_streamed in (False, True):
            how = "streamed" if is_streamed else "whole"
            yield f"{name} {how} answers", lambda p=provider, s=is_streamed: p.answers(s)
            yield f"{name} {how} calls", lambda p=provider, s=is_streamed: p.calls(s)
            yield f"{name} {how} demanded calls", lambda p=provider, s=is_streamed: p.demanded(s)
            for choice in demands.CHOICES:
                # Anthropic's API has no such choice, and litellm sends none to hosted_vllm.
                if name != "openai" and choice.startswith("allowed"):
                    continue
                yield f"{name} {how} choice {choice}", lambda p=provider, c=choice, s=is_streamed: p.chooses(c, s)
            yield f"{name} {how} person", lambda p=provider, s=is_streamed: p.person(s)
        yield f"{name} responses", provider.responses
        yield f"{name} messages", provider.messages
