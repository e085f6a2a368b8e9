"""Tools whose calls a small model surely ends, the choices that a request may make of them, and objects of a type.

Every argument has few values, so a call under its schema is over after some tokens whatever the model says.
"""
import json

import pydantic

from weather import check, equal

CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Rome", "Paris", "Oslo"]}},
        "required": ["city"], "additionalProperties": False}
SUM = {"type": "object",
       "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "b": {"type": "boolean"}},
       "required": ["a", "b"], "additionalProperties": False}
TOOLS = {"weather": ("The weather in a city.", CITY), "add": ("The sum of two numbers.", SUM)}
QUESTION = "What is the weather in Rome?"
ENOUGH_TOKENS = 200

# name -> (the tools that may be called, whether one must be)
CHOICES = {"auto": (["weather", "add"], False), "required": (["weather", "add"], True), "named": (["add"], True),
           "allowed": (["weather"], False), "allowed, required": (["weather"], True), "none": ([], False)}


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str = pydantic.Field(max_length=12)
    age: int = pydantic.Field(ge=0, le=120)


ABOUT_PERSON = "Ann is three."


def chat_tool(name, **changes):
    description, schema = TOOLS[name]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema, **changes}}


def chat_tools(**changes):
    return [chat_tool(name, **changes) for name in TOOLS]


def chat_choice(name):
    """As a chat says it."""
    if name == "named":
        return {"type": "function", "function": {"name": "add"}}
    if name.startswith("allowed"):
        mode = "required" if name.endswith("required") else "auto"
        return {"type": "allowed_tools", "allowed_tools": {
            "mode": mode, "tools": [{"type": "function", "function": {"name": "weather"}}]}}
    return name


def responses_choice(said):
    """As the Responses API says what a chat says so."""
    if isinstance(said, str):
        return said
    if said["type"] == "function":
        return {"type": "function", **said["function"]}
    allowed = said["allowed_tools"]
    return {"type": "allowed_tools", "mode": allowed["mode"],
            "tools": [{"type": "function", **tool["function"]} for tool in allowed["tools"]]}


def check_calls(choice, calls, text=None):
    """`calls`: (name, arguments as JSON or as an object) of one answer."""
    allowed, must_call = CHOICES[choice]
    check(f"{choice}: a call", calls or not must_call)
    check(f"{choice}: an answer", calls or text)
    for name, arguments in calls:
        check(f"{choice}: {name} is one of {allowed}", name in allowed)
        check_arguments(name, json.loads(arguments) if isinstance(arguments, str) else arguments)


def check_arguments(name, arguments):
    if name == "weather":
        equal("members", list(arguments), ["city"])
        check(f"a city: {arguments}", arguments["city"] in CITY["properties"]["city"]["enum"])
    else:
        equal("members", list(arguments), ["a", "b"])
        check(f"numbers: {arguments}", 0 <= arguments["a"] <= 99 and isinstance(arguments["b"], bool))


def check_person(person):
    check(f"a person: {person!r}", isinstance(person, Person) and len(person.name) <= 12 and 0 <= person.age <= 120)
