"""langchain-openai (chat and responses) and langchain-anthropic with a tool that is bound, and with schemas."""
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import demands
import weather
from weather import check, equal


ENOUGH_TOKENS = 400  # for an object of SCHEMA
SCHEMA = {"title": "Person", "description": "A person.", "type": "object",
          "properties": {"name": {"type": "string", "maxLength": 12}}, "required": ["name"], "additionalProperties": False}


def models(server, model, max_tokens=weather.MAX_TOKENS):
    common = {"model": model, "api_key": "none", "temperature": 0, "max_tokens": max_tokens, "max_retries": 0}
    return {"chat": ChatOpenAI(base_url=server.url + "/v1", stream_usage=True, **common),
            "responses": ChatOpenAI(base_url=server.url + "/v1", use_responses_api=True, **common),
            "anthropic": ChatAnthropic(base_url=server.url, **common)}


def history():
    messages = [SystemMessage(weather.INSTRUCTIONS)]
    for index, city in enumerate(weather.CITIES):
        call = {"id": f"t{index}", "name": "weather", "args": {"city": city}}
        messages += [HumanMessage(weather.question_to(city)), AIMessage("", tool_calls=[call]),
                     ToolMessage(weather.RESULT, tool_call_id=call["id"]), AIMessage(weather.answer_to(city))]
    return [*messages, HumanMessage(weather.QUESTION)]


def ask(model, messages, is_streamed):
    if not is_streamed:
        return model.invoke(messages)
    chunks = list(model.stream(messages))
    check(f"several chunks, got {len(chunks)}", len(chunks) > 2)
    return sum(chunks[1:], chunks[0])


def answers(model, is_streamed):
    answer = ask(model.bind_tools([tool(weather.Weather().function())]), [HumanMessage("Say hi.")], is_streamed)
    check("an answer", answer.text)
    equal("calls", answer.tool_calls, [])
    check("usage", answer.usage_metadata["output_tokens"] > 0)


def calls(model, is_streamed):
    function = tool(weather.Weather().function())
    bound, messages = model.bind_tools([function]), history()
    answer = ask(bound, messages, is_streamed)
    equal("calls", [(call["name"], call["args"]) for call in answer.tool_calls], [("weather", weather.ARGUMENTS)])
    equal("invalid calls", answer.invalid_tool_calls, [])
    messages += [answer, *(function.invoke(call) for call in answer.tool_calls)]
    answer = ask(bound, messages, is_streamed)
    equal("answer", answer.text, weather.ANSWER)


def demand_tools():
    """As OpenAI has them: langchain-anthropic takes them too."""
    return demands.chat_tools(strict=True)


def choice_for(api, choice):
    """As bind_tools takes it. It passes objects on as they are, so those are in the words of the API."""
    if choice == "none" and api == "anthropic":
        return {"type": "none"}
    if choice.startswith("allowed"):
        said = demands.chat_choice(choice)
        return demands.responses_choice(said) if api == "responses" else said
    return {"named": "add", "required": "any"}.get(choice, choice)


def chooses(model, api, choice, is_streamed):
    # langchain-anthropic writes the bound of calls into the choice, and Anthropic's "none" has no such member.
    bound = {} if choice == "none" and api == "anthropic" else {"parallel_tool_calls": False}
    bound = model.bind_tools(demand_tools(), tool_choice=choice_for(api, choice), **bound)
    answer = ask(bound, [HumanMessage(demands.QUESTION)], is_streamed)
    demands.check_calls(choice, [(call["name"], call["args"]) for call in answer.tool_calls], answer.text)
    equal("invalid calls", answer.invalid_tool_calls, [])


def gives_person(model, method, is_streamed):
    typed = model.with_structured_output(demands.Person, method=method)
    if not is_streamed:
        return demands.check_person(typed.invoke(demands.ABOUT_PERSON))
    *_, last = typed.stream(demands.ABOUT_PERSON)
    demands.check_person(last)


def fills(model, method):
    answer = model.with_structured_output(SCHEMA, method=method).invoke("Ann is three. Answer in JSON.")
    check(f"an object: {answer}", isinstance(answer, dict))
    if method != "json_mode":
        equal("members", list(answer), ["name"])


def checks(server, model):
    for api, chat in models(server, model).items():
        for is_streamed in (False, True):
            how = "streamed" if is_streamed else "whole"
            yield f"{api} {how} answers", lambda chat=chat, s=is_streamed: answers(chat, s)
            yield f"{api} {how} calls", lambda chat=chat, s=is_streamed: calls(chat, s)
    for api, chat in models(server, model, ENOUGH_TOKENS).items():
        for method in ("json_schema", "function_calling"):  # any object of a small model is seldom whole in 400 tokens
            yield f"{api} {method}", lambda chat=chat, method=method: fills(chat, method)
            for is_streamed in (False, True):
                yield (f"{api} {'streamed' if is_streamed else 'whole'} person by {method}",
                       lambda chat=chat, method=method, s=is_streamed: gives_person(chat, method, s))
        for choice in demands.CHOICES:
            if api == "anthropic" and choice.startswith("allowed"):  # a choice that its API has not
                continue
            for is_streamed in (False, True):
                yield (f"{api} {'streamed' if is_streamed else 'whole'} choice {choice}",
                       lambda chat=chat, api=api, c=choice, s=is_streamed: chooses(chat, api, c, s))
