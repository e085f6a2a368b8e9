"""The cases over gRPC (packages `grpcio` and `grpcio-reflection`): messages as the server's reflection describes them.
Completions and chats are calls of Generate, brought into the form of OpenAI's answers."""
import threading

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from answer import Answer, Refused
from raw_client import TIME_LIMIT_S

SERVER_OPTIONS = ("--grpc-port", "0")
METHODS = {"completions": "Generate", "chat": "Generate", "embeddings": "Embed", "tokenize": "Tokenize"}
STATUSES = {"INVALID_ARGUMENT": 400, "UNAUTHENTICATED": 401, "NOT_FOUND": 404, "RESOURCE_EXHAUSTED": 429,
            "UNAVAILABLE": 503}
NOT_SENT = {"stream_options"}  # of which this client makes what the case expects


class Service:
    """Methods and messages of kvasir.v1.Kvasir, asked of the server."""

    def __init__(self, channel):
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service = pool.FindServiceByName("kvasir.v1.Kvasir")
        self.methods, self.calls = service.methods_by_name, {}
        self.error = message_factory.GetMessageClass(pool.FindMessageTypeByName("kvasir.v1.Error"))
        for name, method in self.methods.items():
            connect = channel.unary_stream if method.server_streaming else channel.unary_unary
            answer = message_factory.GetMessageClass(method.output_type)
            self.calls[name] = connect(f"/kvasir.v1.Kvasir/{name}", request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=answer.FromString)

    def message(self, method, request):
        """ValueError: what the message cannot say."""
        request = {name: value for name, value in request.items() if value is not None and name not in NOT_SENT}
        prompt = request.get("prompt")
        if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
            request["prompt_token_ids"] = request.pop("prompt")
        for name in ("stop", "input"):
            if isinstance(request.get(name), str):
                request[name] = [request[name]]
        message = message_factory.GetMessageClass(self.methods[method].input_type)()
        try:
            json_format.ParseDict(request, message)
        except json_format.ParseError as error:
            raise ValueError(f"{method} cannot say it: {error}") from None
        said = json_format.MessageToDict(message, preserving_proto_field_name=True)
        if said.keys() != request.keys():  # an empty list
            raise ValueError(f"{method} cannot say it: {sorted(request.keys() - said.keys())} is empty")
        return message


class Client:
    blind = frozenset({"envelope", "role", "usage_chunk"})

    def __init__(self, server, model, key):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        self.metadata = [("authorization", f"Bearer {key}")] if key is not None else []
        self.lock, self.service_ = threading.Lock(), None

    @property
    def service(self):
        with self.lock:
            if self.service_ is None:
                self.service_ = Service(self.channel)
            return self.service_

    def cannot(self, case):
        if case.endpoint not in METHODS:
            return f"has no method for {case.endpoint}"
        stand_ins = {name: "?" if isinstance(value, dict) and any(key.startswith("$") for key in value) else value
                     for name, value in case.request.items()}
        try:
            self.service.message(METHODS[case.endpoint], stand_ins)
        except ValueError as error:
            return str(error).split(":")[0]
        return None

    def ask(self, endpoint, request, streamed):
        method = METHODS[endpoint]
        message = self.service.message(method, request)
        try:
            answer = self.service.calls[method](message, metadata=self.metadata, timeout=TIME_LIMIT_S)
            if method == "Generate":
                with_usage = not streamed or (request.get("stream_options") or {}).get("include_usage")
                return generated(endpoint, list(answer), streamed, with_usage)
        except grpc.RpcError as error:
            raise self.refusal(error) from None
        whole = json_format.MessageToDict(answer, preserving_proto_field_name=True)
        for index, item in enumerate(whole.get("data", [])):
            item.setdefault("index", 0)
            item["embedding"] = list(answer.data[index].embedding)
        return Answer([whole], False)

    def refusal(self, error):
        metadata = dict(error.trailing_metadata() or ())
        details = self.service.error.FromString(metadata["kvasir-error-bin"])
        assert details.message == error.details(), f"{details.message!r} and {error.details()!r}"
        fields = {name: getattr(details, name) or None for name in ("message", "type", "param", "code")}
        return Refused(STATUSES[error.code().name], fields, retry_after=metadata.get("retry-after"))


def usage_of(piece):
    return {"prompt_tokens": piece.prompt_tokens, "completion_tokens": piece.completion_tokens,
            "total_tokens": piece.prompt_tokens + piece.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": piece.cached_tokens}}


def generated(endpoint, pieces, streamed, with_usage):
    assert len({piece.id for piece in pieces}) == 1, f"one id: {pieces}"
    assert sum(len(piece.token_ids) for piece in pieces) <= pieces[-1].completion_tokens, "tokens and their number"
    parts = [{"text": piece.text, "finish_reason": piece.finish_reason or None} for piece in pieces]
    if not streamed:
        assert all(part["finish_reason"] is None for part in parts[:-1]), f"one end: {parts}"
        parts = [{"text": "".join(part["text"] for part in parts), "finish_reason": parts[-1]["finish_reason"]}]
    if endpoint == "chat":
        name = "delta" if streamed else "message"
        parts = [{name: {"content": part["text"]}, "finish_reason": part["finish_reason"]} for part in parts]
    objects = [{"choices": [{"index": 0} | part]} for part in parts]
    if with_usage:
        objects[-1]["usage"] = usage_of(pieces[-1])
    return Answer(objects, streamed)
