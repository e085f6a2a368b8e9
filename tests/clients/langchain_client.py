"""The cases through the package `langchain-openai`: ChatOpenAI, OpenAI (legacy completions) and OpenAIEmbeddings."""
import json

import openai
from langchain_core.messages import convert_to_messages
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from answer import Answer
from openai_client import in_signature, refused

RENAMED = {"max_completion_tokens": "max_tokens"}  # ChatOpenAI sends the former for the latter


class Client:
    blind = frozenset({"envelope", "role", "usage_chunk"})

    def __init__(self, server, model, key):
        self.to = {"base_url": server.url + "/v1", "api_key": key or "none", "max_retries": 0}
        self.openai = openai.OpenAI(base_url="http://127.0.0.1/", api_key="none")  # for its calls' signatures

    def cannot(self, case):
        request = case.request
        if case.endpoint not in ("chat", "completions", "embeddings"):
            return f"has no call for {case.endpoint}"
        if case.key == "":
            return "always sends a key"
        if "model" not in request:
            return "needs the name of a model"
        if case.streamed and request.get("n", 1) != 1:
            return "streams one choice"
        if case.endpoint == "completions":
            return self.cannot_complete(case.streamed, request)
        if case.endpoint == "embeddings" and not strings(request.get("input")):
            return "embeds texts only"
        return None

    @staticmethod
    def cannot_complete(streamed, request):
        if not strings(request.get("prompt")):
            return "completes texts only"
        if streamed and isinstance(request["prompt"], list):
            return "streams one prompt"
        if streamed and "stream_options" in request:
            return "shows no usage of a streamed completion"
        return None

    def ask(self, endpoint, request, streamed):
        ask = {"chat": self.chat, "completions": self.complete, "embeddings": self.embed}[endpoint]
        try:
            return ask(dict(request), streamed)
        except openai.APIStatusError as error:
            raise with_names_of_the_request(refused(error), request) from None

    def chat(self, request, streamed):
        model = ChatOpenAI(model=request.pop("model"), **self.to)
        messages = convert_to_messages(request.pop("messages"))
        arguments = in_signature(self.openai.chat.completions.create, request)
        if streamed:
            arguments["stream_usage"] = bool((arguments.get("stream_options") or {}).get("include_usage"))
            return Answer([chat_chunk(chunk) for chunk in model.stream(messages, **arguments)], True)
        result = model.generate([messages], **arguments)
        return Answer([{"choices": [chat_choice(i, g) for i, g in enumerate(result.generations[0])],
                        "usage": result.llm_output["token_usage"]}], False)

    def complete(self, request, streamed):
        prompts = request.pop("prompt")
        number = request.pop("n", 1)  # a setting of the model here: it tells the choices of several prompts apart
        model = OpenAI(model=request.pop("model"), n=number, **self.to)
        arguments = in_signature(self.openai.completions.create, request)
        if streamed:
            return Answer([completion_chunk(chunk) for chunk in model._stream(prompts, **arguments)], True)
        result = model.generate([prompts] if isinstance(prompts, str) else prompts, **arguments)
        generations = [generation for of_prompt in result.generations for generation in of_prompt]
        return Answer([{"choices": [completion_choice(i, g) for i, g in enumerate(generations)],
                        "usage": result.llm_output["token_usage"]}], False)

    def embed(self, request, streamed):
        texts = request.pop("input")
        # Unless told not to, it sends token ids of a tokenizer that is not the model's.
        model = OpenAIEmbeddings(model=request.pop("model"), dimensions=request.pop("dimensions", None),
                                 check_embedding_ctx_length=False,
                                 model_kwargs=in_signature(self.openai.embeddings.create, request), **self.to)
        vectors = model.embed_documents([texts] if isinstance(texts, str) else texts)
        return Answer([{"data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]}], False)


def strings(value):
    """A text or a list of them. An object stands for a text (case_table.py)."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, dict))


def with_names_of_the_request(error, request):
    param = error.error.get("param")
    if param == "prompt[0]" and isinstance(request["prompt"], str):  # it always sends a list
        error.error = error.error | {"param": "prompt"}
    if RENAMED.get(param) in request and param not in request:
        error.error = error.error | {"param": RENAMED[param]}
    return error


def calls_of(message):
    calls = (message.additional_kwargs or {}).get("tool_calls")
    if calls or not message.tool_calls:
        return calls
    return [{"id": call["id"], "function": {"name": call["name"], "arguments": json.dumps(call["args"])}}
            for call in message.tool_calls]


def chat_choice(index, generation):
    info, message = generation.generation_info or {}, generation.message
    return {"index": index, "finish_reason": info.get("finish_reason"), "logprobs": info.get("logprobs"),
            "message": {"content": message.content, "tool_calls": calls_of(message)}}


def chat_chunk(chunk):
    calls = [{"index": call["index"], "id": call["id"], "function": {"name": call["name"], "arguments": call["args"]}}
             for call in chunk.tool_call_chunks]
    usage = chunk.usage_metadata
    return {"choices": [{"index": 0, "finish_reason": chunk.response_metadata.get("finish_reason"),
                         "logprobs": chunk.response_metadata.get("logprobs"),
                         "delta": {"content": chunk.content, "tool_calls": calls}}],
            "usage": usage and {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"],
                                "total_tokens": usage["total_tokens"]}}


def completion_choice(index, generation):
    info = generation.generation_info or {}
    return {"index": index, "text": generation.text, "finish_reason": info.get("finish_reason"),
            "logprobs": info.get("logprobs")}


def completion_chunk(chunk):
    return {"choices": [completion_choice(0, chunk)]}
