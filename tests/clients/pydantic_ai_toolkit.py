"""pydantic-ai: an agent with a tool, through its models of chat, responses and Anthropic's messages."""
import asyncio

import anthropic
from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

import weather
from weather import check, equal

APIS = ("chat", "responses", "anthropic")


def model_of(server, model, api):
    if api == "anthropic":
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0)
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return kind(model, provider=OpenAIProvider(base_url=server.url + "/v1", api_key="none"))


def history():
    messages = []
    for index, city in enumerate(weather.CITIES):
        messages += [ModelRequest([UserPromptPart(weather.question_to(city))]),
                     ModelResponse([ToolCallPart("weather", {"city": city}, tool_call_id=f"t{index}")]),
                     ModelRequest([ToolReturnPart("weather", weather.RESULT, tool_call_id=f"t{index}")]),
                     ModelResponse([TextPart(weather.answer_to(city))])]
    return messages


async def run(agent, prompt, messages, is_streamed):
    options = {"message_history": messages, "usage_limits": UsageLimits(request_limit=3)}
    if not is_streamed:
        result = await agent.run(prompt, **options)
        return result.output, result.usage
    async with agent.run_stream(prompt, **options) as result:
        text = "".join([delta async for delta in result.stream_text(delta=True)])
        return text, result.usage


def ask(server, model, api, prompt, messages, is_streamed):
    """(answer, cities that the tool was called with)"""
    tool = weather.Weather()
    agent = Agent(model_of(server, model, api), instructions=weather.INSTRUCTIONS, tools=[tool.function()],
                  model_settings={"temperature": 0, "max_tokens": weather.MAX_TOKENS})
    answer, usage = asyncio.run(run(agent, prompt, messages, is_streamed))
    check("usage", usage.output_tokens > 0)
    return answer, tool.cities


def answers(*to, is_streamed):
    answer, cities = ask(*to, "Say hi.", [], is_streamed)
    check("an answer", answer)
    equal("calls", cities, [])


def calls(*to, is_streamed):
    answer, cities = ask(*to, weather.QUESTION, history(), is_streamed)
    equal("calls", cities, ["Madrid"])
    equal("answer", answer, weather.ANSWER)


def counts_before(server, model, api):
    """It asks how many tokens a prompt has before it sends it, and does not send one that has too many."""

    def run_within(input_tokens):  # with a client of its own, for it belongs to an event loop
        agent = Agent(model_of(server, model, api),
                      model_settings={"temperature": 0, "max_tokens": weather.MAX_TOKENS})
        limits = UsageLimits(count_tokens_before_request=True, input_tokens_limit=input_tokens)
        return asyncio.run(agent.run("Say hi.", usage_limits=limits)).output

    check("an answer", run_within(1000))
    try:
        run_within(5)
    except UsageLimitExceeded:
        return
    raise AssertionError("a prompt of more tokens than allowed was sent")


def checks(server, model):
    for api in APIS:
        for is_streamed in (False, True):
            for function in (answers, calls):
                name = f"{api} {'streamed' if is_streamed else 'whole'} {function.__name__}"
                yield name, lambda f=function, api=api, s=is_streamed: f(server, model, api, is_streamed=s)
    for api in ("responses", "anthropic"):
        yield f"{api} counts", lambda api=api: counts_before(server, model, api)
