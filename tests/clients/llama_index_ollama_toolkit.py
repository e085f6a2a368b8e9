"""LlamaIndex's Ollama: chats, completions, calls of a tool, and objects of a schema."""
import json

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama
from pydantic import BaseModel, Field

import weather
from weather import check, equal

SERVER_OPTIONS = ("--ollama-port", "0")
HI = [ChatMessage(role="user", content="Say hi.")]
ENOUGH_TOKENS = 400  # for a Person


class Person(BaseModel):
    name: str = Field(max_length=12)


def llm(server, model, max_tokens=weather.MAX_TOKENS):
    return Ollama(model=model, base_url=server.ollama_url, temperature=0, context_window=2048,
                  additional_kwargs={"num_predict": max_tokens})


def chats(chat):
    whole = chat.chat(HI).message.content
    check("an answer", whole)
    equal("the stream", "".join(chunk.delta or "" for chunk in chat.stream_chat(HI)), whole)


def completes(chat):
    whole = chat.complete("The capital of France is").text
    check("an answer", whole)
    equal("the stream", "".join(chunk.delta or "" for chunk in chat.stream_complete("The capital of France is")), whole)


def history():
    messages = []
    for city in weather.CITIES:
        call = {"function": {"name": "weather", "arguments": {"city": city}}}
        messages += [ChatMessage(role="user", content=weather.question_to(city)),
                     ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [call]}),
                     ChatMessage(role="tool", content=weather.RESULT, additional_kwargs={"tool_name": "weather"}),
                     ChatMessage(role="assistant", content=weather.answer_to(city))]
    return messages


def calls(chat, is_streamed):
    tools = [FunctionTool.from_defaults(weather.Weather().function())]
    ask = chat.stream_chat_with_tools if is_streamed else chat.chat_with_tools
    answer = ask(tools, user_msg=weather.QUESTION, chat_history=history())
    if is_streamed:
        *_, answer = answer
    found = [(call.tool_name, call.tool_kwargs) for call in chat.get_tool_calls_from_response(answer)]
    equal("calls", found, [("weather", weather.ARGUMENTS)])


def fills(chat):
    answer = chat.as_structured_llm(Person).complete("Ann is three.")
    equal("members", list(json.loads(answer.text)), ["name"])


def checks(server, model):
    chat = llm(server, model)
    yield "chat", lambda: chats(chat)
    yield "completions", lambda: completes(chat)
    yield "calls", lambda: calls(chat, False)
    yield "calls in a stream", lambda: calls(chat, True)
    yield "a schema", lambda: fills(llm(server, model, ENOUGH_TOKENS))
