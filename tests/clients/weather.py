"""A conversation in which the small model surely calls a tool: it has done so three times before.

Each round is a question, the call of `weather`, its result and an answer in words. To one more question the model then
answers with a call, and to its result in words (greedy, with the template of SETUP).
"""
import json

SETUP = {"chat_template": "families/hermes.jinja"}
CITIES = ["Rome", "Paris", "Oslo"]
QUESTION = "weather in Madrid"
ARGUMENTS = {"city": "Madrid"}
RESULT = "sunny"
ANSWER = "It is sunny in Madrid."
INSTRUCTIONS = "Be brief."
MAX_TOKENS = 48
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "A city"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function",
             "function": {"name": "weather", "description": "The weather in a city.", "parameters": SCHEMA}}


def question_to(city):
    return f"weather in {city}"


def answer_to(city):
    return f"It is sunny in {city}."


def chat_call(call_id, city):
    """The call as chat completions have it in a history."""
    return {"id": call_id, "type": "function",
            "function": {"name": "weather", "arguments": json.dumps({"city": city})}}


def chat_round(index, city):
    return [{"role": "user", "content": question_to(city)},
            {"role": "assistant", "content": None, "tool_calls": [chat_call(f"t{index}", city)]},
            {"role": "tool", "tool_call_id": f"t{index}", "content": RESULT},
            {"role": "assistant", "content": answer_to(city)}]


def chat_history():
    return [message for index, city in enumerate(CITIES) for message in chat_round(index, city)]


def responses_history():
    """The same as items of the Responses API."""
    items = []
    for index, city in enumerate(CITIES):
        call = chat_call(f"t{index}", city)["function"]
        items += [{"role": "user", "content": question_to(city)},
                  {"type": "function_call", "call_id": f"t{index}", **call},
                  {"type": "function_call_output", "call_id": f"t{index}", "output": RESULT},
                  {"role": "assistant", "content": answer_to(city)}]
    return items


class Weather:
    """The tool as a function of Python. `cities`: those that it was called with."""

    def __init__(self):
        self.cities = []

    def function(self):
        def weather(city: str) -> str:
            """The weather in a city.

            Args:
                city: A city
            """
            self.cities.append(city)
            return RESULT
        return weather


def equal(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, expected {expected!r}")


def check(what, holds):
    if not holds:
        raise AssertionError(what)
