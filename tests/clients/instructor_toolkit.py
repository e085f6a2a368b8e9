"""instructor: each of its modes demands a schema or a call, and is refused in words; the one in plain text works."""
import anthropic
import instructor
import openai
import pydantic
from instructor.core import InstructorRetryException

import weather
from weather import check, equal

Mode = instructor.Mode
OPENAI_MODES = [Mode.FUNCTIONS, Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON, Mode.JSON_SCHEMA, Mode.RESPONSES_TOOLS]
ANTHROPIC_MODES = [Mode.ANTHROPIC_TOOLS]
MESSAGES = [{"role": "user", "content": "Ann is three."}]


class Person(pydantic.BaseModel):
    name: str


def openai_client(server, mode):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    return instructor.from_openai(client, mode=mode)


def anthropic_client(server, mode):
    return instructor.from_anthropic(anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0), mode=mode)


def refuses(client, model):
    bound = {} if client.mode == Mode.RESPONSES_TOOLS else {"max_tokens": weather.MAX_TOKENS}
    try:
        client.create(model=model, response_model=Person, messages=MESSAGES, max_retries=0, **bound)
    except InstructorRetryException as error:
        text = str(error)
        check(f"a status in {text}", "400" in text)
        check(f"what is wrong in {text}", "not supported yet" in text)
        check(f"the field in {text}", any(name in text for name in ("tool_choice", "response_format", "text.format")))
    else:
        raise AssertionError("no refusal")


def in_plain_text(server, model):
    """The schema stands in the prompt. The small model repeats a piece of it, which is an object with a title."""
    titled = pydantic.create_model("Titled", title=(str, ...))
    answer = openai_client(server, Mode.MD_JSON).create(
        model=model, response_model=titled, messages=MESSAGES, max_retries=0, max_tokens=weather.MAX_TOKENS,
        temperature=0, stop=["}"], extra_body={"include_stop_str_in_output": True})
    check("a title", answer.title)


def checks(server, model):
    for mode in OPENAI_MODES:
        yield mode.name, lambda mode=mode: refuses(openai_client(server, mode), model)
    for mode in ANTHROPIC_MODES:
        yield mode.name, lambda mode=mode: refuses(anthropic_client(server, mode), model)
    yield "MD_JSON", lambda: in_plain_text(server, model)
