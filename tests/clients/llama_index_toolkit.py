"""LlamaIndex's OpenAILike: chats, completions, calls of a tool, and its agent."""
import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

import weather
from weather import check, equal

HI = [ChatMessage(role="user", content="Say hi.")]


def llm(server, model, is_chat):
    return OpenAILike(model=model, api_base=server.url + "/v1", api_key="none", is_chat_model=is_chat, temperature=0,
                      is_function_calling_model=is_chat, max_tokens=weather.MAX_TOKENS, max_retries=0)


def message_of(message):
    extra = {name: message[name] for name in ("tool_calls", "tool_call_id") if name in message}
    return ChatMessage(role=message["role"], content=message["content"], additional_kwargs=extra)


def history():
    return [message_of(message) for message in weather.chat_history()]


def chats(chat):
    whole = chat.chat(HI).message.content
    check("an answer", whole)
    equal("the stream", "".join(chunk.delta or "" for chunk in chat.stream_chat(HI)), whole)


def completes(completion):
    prompt = "The capital of France is"
    whole = completion.complete(prompt).text
    check("an answer", whole)
    equal("the stream", "".join(chunk.delta or "" for chunk in completion.stream_complete(prompt)), whole)


def calls(chat, is_streamed):
    tools = [FunctionTool.from_defaults(weather.Weather().function())]
    ask = chat.stream_chat_with_tools if is_streamed else chat.chat_with_tools
    answer = ask(tools, user_msg=weather.QUESTION, chat_history=history())
    if is_streamed:
        *_, answer = answer
    found = [(call.tool_name, call.tool_kwargs) for call in chat.get_tool_calls_from_response(answer)]
    equal("calls", found, [("weather", weather.ARGUMENTS)])


async def run_agent(chat, tool):
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(tool.function())], llm=chat,
                          system_prompt=weather.INSTRUCTIONS)
    return await agent.run(weather.QUESTION, chat_history=history())


def agent_calls(chat):
    tool = weather.Weather()
    answer = asyncio.run(run_agent(chat, tool))
    equal("calls", tool.cities, ["Madrid"])
    equal("answer", answer.response.content, weather.ANSWER)


def checks(server, model):
    chat = llm(server, model, True)
    yield "chat", lambda: chats(chat)
    yield "completions", lambda: completes(llm(server, model, False))
    yield "calls", lambda: calls(chat, False)
    yield "calls in a stream", lambda: calls(chat, True)
    yield "agent", lambda: agent_calls(chat)
