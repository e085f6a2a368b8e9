"""instructor: modes with a schema give typed objects, and so do those that demand a call."""
import anthropic
import instructor
import openai
import pydantic

import weather
from weather import check, equal

Mode = instructor.Mode
OPENAI_CALLS = [Mode.TOOLS, Mode.TOOLS_STRICT, Mode.RESPONSES_TOOLS]
ANTHROPIC_CALLS = [Mode.ANTHROPIC_TOOLS]
MESSAGES = [{"role": "user", "content": "Ann is three."}]
ENOUGH_TOKENS = 400


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str = pydantic.Field(max_length=12)
    age: int = pydantic.Field(ge=0, le=120)


class Anything(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")


def openai_client(server, mode):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    return instructor.from_openai(client, mode=mode)


def anthropic_client(server, mode):
    return instructor.from_anthropic(anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0), mode=mode)


def calls(client, model):
    bound = {} if client.mode == Mode.RESPONSES_TOOLS else {"max_tokens": ENOUGH_TOKENS}
    person = client.create(model=model, response_model=Person, messages=MESSAGES, max_retries=0, **bound)
    check("a person", isinstance(person, Person))


def calls_in_pieces(client, model):
    """Objects that grow as they come."""
    *_, last = client.create_partial(model=model, response_model=Person, messages=MESSAGES, max_retries=0,
                                     max_tokens=ENOUGH_TOKENS)
    check("a person", isinstance(last, Person) and last.age >= 0)


def fills_schema(server, model):
    person = openai_client(server, Mode.JSON_SCHEMA).create(
        model=model, response_model=Person, messages=MESSAGES, max_retries=0, max_tokens=ENOUGH_TOKENS)
    check("a person", isinstance(person, Person))


def fills_any_object(server, model):
    answer = openai_client(server, Mode.JSON).create(
        model=model, response_model=Anything, messages=MESSAGES, max_retries=0, max_tokens=ENOUGH_TOKENS, temperature=0)
    check("an object", isinstance(answer, Anything))


def in_plain_text(server, model):
    """The schema stands in the prompt. The small model repeats a piece of it, which is an object with a title."""
    titled = pydantic.create_model("Titled", title=(str, ...))
    answer = openai_client(server, Mode.MD_JSON).create(
        model=model, response_model=titled, messages=MESSAGES, max_retries=0, max_tokens=weather.MAX_TOKENS,
        temperature=0, stop=["}"], extra_body={"include_stop_str_in_output": True})
    check("a title", answer.title)


def checks(server, model):
    yield "JSON_SCHEMA", lambda: fills_schema(server, model)
    yield "JSON", lambda: fills_any_object(server, model)
    for mode in OPENAI_CALLS:
        yield mode.name, lambda mode=mode: calls(openai_client(server, mode), model)
    for mode in ANTHROPIC_CALLS:
        yield mode.name, lambda mode=mode: calls(anthropic_client(server, mode), model)
    for mode in (Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON_SCHEMA):
        yield f"{mode.name} in pieces", lambda mode=mode: calls_in_pieces(openai_client(server, mode), model)
    yield "ANTHROPIC_TOOLS in pieces", lambda: calls_in_pieces(anthropic_client(server, Mode.ANTHROPIC_TOOLS), model)
    yield "MD_JSON", lambda: in_plain_text(server, model)
