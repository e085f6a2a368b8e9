"""Clients of Ollama: its own package, langchain-ollama, and litellm's providers `ollama` and `ollama_chat`."""
import asyncio
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for prices

import litellm
import ollama
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM

import weather
from weather import check, equal

SERVER_OPTIONS = ("--ollama-port", "0")
HI = [{"role": "user", "content": "Say hi."}]
OPTIONS = {"temperature": 0, "num_predict": weather.MAX_TOKENS}
ENOUGH_TOKENS = 400  # for an object of PERSON
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}}, "required": ["name"],
          "additionalProperties": False}


def history():
    """As Ollama's clients keep it: arguments are objects, and results know the tool's name alone."""
    messages = []
    for city in weather.CITIES:
        call = {"function": {"name": "weather", "arguments": {"city": city}}}
        messages += [{"role": "user", "content": weather.question_to(city)},
                     {"role": "assistant", "content": "", "tool_calls": [call]},
                     {"role": "tool", "tool_name": "weather", "content": weather.RESULT},
                     {"role": "assistant", "content": weather.answer_to(city)}]
    return [*messages, {"role": "user", "content": weather.QUESTION}]


def refusal_of(function):
    try:
        function()
    except ollama.ResponseError as error:
        return error
    raise AssertionError("it was not refused")


class Package:
    """The package `ollama`."""

    def __init__(self, server, model):
        self.model = model
        self.client = ollama.Client(host=server.ollama_url)
        self.async_client = ollama.AsyncClient(host=server.ollama_url)

    def chats(self):
        whole = self.client.chat(self.model, HI, options=OPTIONS)
        check("an answer", whole.message.content)
        equal("end", (whole.done, whole.done_reason), (True, "stop"))
        check("counts", whole.eval_count > 0 and whole.prompt_eval_count > 0)
        check("times", whole.total_duration >= whole.prompt_eval_duration + whole.eval_duration > 0)
        parts = list(self.client.chat(self.model, HI, options=OPTIONS, stream=True))
        equal("the stream", "".join(part.message.content for part in parts), whole.message.content)
        equal("ends", [part.done for part in parts], [False] * (len(parts) - 1) + [True])
        equal("counts of the stream", parts[-1].eval_count, whole.eval_count)

    def generates(self):
        whole = self.client.generate(self.model, "Say hi.", options=OPTIONS)
        check("an answer", whole.response)
        pieces = [part.response for part in self.client.generate(self.model, "Say hi.", options=OPTIONS, stream=True)]
        equal("the stream", "".join(pieces), whole.response)
        more = self.client.generate(self.model, "And again.", context=whole.context, options=OPTIONS)
        equal("the conversation before", list(more.context)[:len(whole.context)], list(whole.context))
        raw = self.client.generate(self.model, "The capital of France is", raw=True, options=OPTIONS)
        check("a raw answer without a context", raw.response and raw.context is None)

    def fills_a_schema(self):
        options = OPTIONS | {"num_predict": ENOUGH_TOKENS}
        answer = self.client.chat(self.model, [{"role": "user", "content": "Ann is three."}], format=PERSON, options=options)
        equal("members", list(json.loads(answer.message.content)), ["name"])

    def calls(self):
        messages = history()
        for stream in (False, True):
            answer = self.client.chat(self.model, messages, tools=[weather.CHAT_TOOL], options=OPTIONS, stream=stream)
            parts = list(answer) if stream else [answer]
            found = [(call.function.name, call.function.arguments) for part in parts for call in part.message.tool_calls or ()]
            equal("calls", found, [("weather", weather.ARGUMENTS)])
        messages += [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": weather.ARGUMENTS}}]},
                     {"role": "tool", "tool_name": "weather", "content": weather.RESULT}]
        answer = self.client.chat(self.model, messages, tools=[weather.CHAT_TOOL], options=OPTIONS)
        equal("answer", answer.message.content, weather.ANSWER)

    def embeds(self):
        answer = self.client.embed(self.model, ["a house", "a cat"])
        equal("embeddings", len(answer.embeddings), 2)
        length = sum(number * number for number in answer.embeddings[0])
        check(f"length 1, not {length}", abs(length - 1) < 1e-3)
        one = self.client.embeddings(self.model, "a house")
        equal("the older path", list(one.embedding), list(answer.embeddings[0]))

    def shows(self):
        equal("list", [model.model for model in self.client.list().models], [self.model])
        equal("ps", [model.model for model in self.client.ps().models], [self.model])
        shown = self.client.show(self.model)
        check("capabilities", {"completion", "tools"} <= set(shown.capabilities))
        check("context", shown.modelinfo[f"{shown.modelinfo['general.architecture']}.context_length"] > 0)
        equal("family", shown.details.family, "llama")

    def refuses(self):
        equal("unknown model", refusal_of(lambda: self.client.chat("llama3", HI)).status_code, 404)
        image = [{"role": "user", "content": "What is it?", "images": [b"\x89PNG"]}]
        refused = refusal_of(lambda: self.client.chat(self.model, image))
        equal("an image", refused.status_code, 400)
        check(f"one line: {refused.error}", "images are not supported" in refused.error and "\n" not in refused.error)
        equal("pull", refusal_of(lambda: self.client.pull("llama3")).status_code, 403)
        equal("delete", refusal_of(lambda: self.client.delete(self.model)).status_code, 403)

    def works_async(self):
        async def ask():
            answer = await self.async_client.chat(self.model, HI, options=OPTIONS, stream=True)
            return "".join([part.message.content async for part in answer])
        check("an answer", asyncio.run(ask()))


class LangChain:
    def __init__(self, server, model):
        common = {"model": model, "base_url": server.ollama_url, "temperature": 0}
        self.chat = ChatOllama(num_predict=weather.MAX_TOKENS, validate_model_on_init=True, **common)
        self.enough = ChatOllama(num_predict=ENOUGH_TOKENS, **common)
        self.llm = OllamaLLM(num_predict=weather.MAX_TOKENS, **common)
        self.embeddings = OllamaEmbeddings(model=model, base_url=server.ollama_url)

    def answers(self):
        whole = self.chat.invoke("Say hi.")
        check("usage", whole.usage_metadata["output_tokens"] > 0)
        equal("the stream", "".join(chunk.text for chunk in self.chat.stream("Say hi.")), whole.text)
        check("a completion", self.llm.invoke("The capital of France is"))

    def calls(self):
        function = tool(weather.Weather().function())
        messages = []
        for index, city in enumerate(weather.CITIES):
            call = {"id": f"t{index}", "name": "weather", "args": {"city": city}}
            messages += [HumanMessage(weather.question_to(city)), AIMessage("", tool_calls=[call]),
                         ToolMessage(weather.RESULT, tool_call_id=call["id"]), AIMessage(weather.answer_to(city))]
        answer = self.chat.bind_tools([function]).invoke([*messages, HumanMessage(weather.QUESTION)])
        equal("calls", [(call["name"], call["args"]) for call in answer.tool_calls], [("weather", weather.ARGUMENTS)])

    def fills(self):
        answer = self.enough.with_structured_output(PERSON, method="json_schema").invoke("Ann is three.")
        equal("members", list(answer), ["name"])

    def embeds(self):
        equal("embeddings", len(self.embeddings.embed_documents(["a", "b"])), 2)


class LiteLlm:
    def __init__(self, server, model):
        self.server, self.model = server, model

    def ask(self, provider, is_streamed, **more):
        answer = litellm.completion(model=f"{provider}/{self.model}", api_base=self.server.ollama_url, messages=HI,
                                    temperature=0, max_tokens=weather.MAX_TOKENS, stream=is_streamed, max_retries=0, **more)
        if is_streamed:
            answer = litellm.stream_chunk_builder(list(answer), messages=HI)
        return answer

    def answers(self, provider):
        whole = self.ask(provider, False)
        check("usage", whole.usage.completion_tokens > 0)
        equal("the stream", self.ask(provider, True).choices[0].message.content, whole.choices[0].message.content)

    def calls(self):
        messages = [message | {"tool_calls": [dict(call, id="t", type="function", function=dict(
            call["function"], arguments=json.dumps(call["function"]["arguments"]))) for call in message["tool_calls"]]}
            if "tool_calls" in message else message for message in history()]
        answer = litellm.completion(model=f"ollama_chat/{self.model}", api_base=self.server.ollama_url, messages=messages,
                                    tools=[weather.CHAT_TOOL], temperature=0, max_tokens=weather.MAX_TOKENS, max_retries=0)
        found = [(call.function.name, json.loads(call.function.arguments)) for call in answer.choices[0].message.tool_calls]
        equal("calls", found, [("weather", weather.ARGUMENTS)])

    def embeds(self):
        answer = litellm.embedding(model=f"ollama/{self.model}", api_base=self.server.ollama_url, input=["a", "b"])
        equal("embeddings", len(answer.data), 2)


def checks(server, model):
    package = Package(server, model)
    for what in ("chats", "generates", "fills_a_schema", "calls", "embeds", "shows", "refuses", "works_async"):
        yield f"ollama {what.replace('_', ' ')}", getattr(package, what)
    chain = LangChain(server, model)
    for what in ("answers", "calls", "fills", "embeds"):
        yield f"langchain {what}", getattr(chain, what)
    lite = LiteLlm(server, model)
    for provider in ("ollama", "ollama_chat"):
        yield f"litellm {provider}", lambda provider=provider: lite.answers(provider)
    yield "litellm calls", lite.calls
    yield "litellm embeds", lite.embeds
