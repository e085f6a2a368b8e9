"""Valid requests and what a seeded generator makes of them: bytes that a server must survive.

A library of mutation_test.py. `mutated(rng)` gives (kind, bytes, is_framed); framed ones are whole HTTP requests
whose body alone is odd, so each must be answered. The same generator state gives the same bytes.
"""
import json
import random

from http_wire import request_bytes

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":[1,2.5]}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "5"}]}]
REQUESTS = [
    ("/v1/completions", {"model": "smollm2:135m", "prompt": "Once upon", "max_tokens": 2, "temperature": 0.7,
                         "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7, "n": 2, "stop": ["\n", "end"],
                         "logprobs": 2}),
    ("/v1/completions", {"prompt": [504, 28, 260], "max_tokens": 2, "stream": True, "echo": True,
                         "stream_options": {"include_usage": True}, "logit_bias": {"5": -100, "2": 1.5}}),
    ("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 1, "presence_penalty": 0.5, "frequency_penalty": -0.5,
                         "repetition_penalty": 1.1, "min_tokens": 1, "ignore_eos": True, "stop_token_ids": [2, 5]}),
    ("/v1/completions", {"prompt": "Score this text.", "max_tokens": 0, "echo": True, "logprobs": 3, "n": 1,
                         "prompt_logprobs": 1, "skip_special_tokens": False, "parse_special": True}),
    ("/v1/completions", {"prompt": "The sea", "max_tokens": 2, "kv_policy": "ladder", "kv_budget": 0.3, "priority": 1,
                         "kv_quality": "best_effort", "kv_max_lost_share": 0.5, "kv_learn": False, "cache_salt": "s", "user": "u", "metadata": {"a": "b"}}),
    ("/v1/chat/completions", {"messages": CHAT, "max_completion_tokens": 2, "logprobs": True, "top_logprobs": 3,
                              "response_format": {"type": "text"}, "chat_template_kwargs": {"x": [1, {"y": None}]}}),
    ("/v1/chat/completions", {"messages": CHAT[:2], "max_tokens": 2, "stream": True, "n": 2, "tool_choice": "none",
                              "tools": [{"type": "function", "function": {"name": "f", "parameters": {
                                  "type": "object", "properties": {"a": {"type": "number"}}}}}]}),
    ("/v1/messages", {"model": "smollm2:135m", "max_tokens": 2, "system": [{"type": "text", "text": "Be brief."}],
                      "messages": [{"role": "user", "content": "Hi"},
                                   {"role": "assistant", "content": [{"type": "text", "text": "Ho"}, {
                                       "type": "tool_use", "id": "t1", "name": "f", "input": {"a": [1, 2.5]}}]},
                                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                                                                 "content": [{"type": "text", "text": "5"}]}]}],
                      "stop_sequences": ["end"], "stream": True, "thinking": {"type": "disabled"},
                      "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
                      "tool_choice": {"type": "none", "disable_parallel_tool_use": True}}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi"}], "system": "Be brief."}),
    ("/v1/responses", {"max_output_tokens": 2, "instructions": "Be brief.", "stream": True,
                       "include": ["message.output_text.logprobs"], "top_logprobs": 2, "metadata": {"a": "b"},
                       "text": {"format": {"type": "text"}}, "tool_choice": "none",
                       "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {
                           "type": "object", "properties": {"a": {"type": "number"}}}}],
                       "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
                                 {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
                                 {"type": "function_call_output", "call_id": "c1", "output": "5"}]}),
    ("/v1/generate", {"prompt": "Hello", "max_tokens": 2, "stream": False, "temperature": 0}),
    ("/v1/embeddings", {"input": ["a b", "c"], "encoding_format": "base64", "pooling": "last", "dimensions": 576}),
    ("/tokenize", {"messages": CHAT[:2], "add_generation_prompt": False, "return_token_strs": True}),
    ("/detokenize", {"tokens": [1, 504, 49151], "skip_special_tokens": True}),
]


LONG_SHARE = 0.01  # of the structural ones


class Raw(str):
    """JSON as it is written, valid or not."""


class Members(list):
    """An object as [name, value] pairs, which may repeat a name."""


NUMBERS = [Raw(text) for text in (
    "0", "-0", "-1", "1", "2", "16", "17", "4096", "8191", "8193", "49151", "49152", "2147483647", "2147483648",
    "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
    "1e400", "-1e400", "1e-400", "1e-46", "5e-324", "1.0", "0.5", "-0.0", "1e2", "NaN", "Infinity", "01", "+1", ".5",
    "1.", "0x10", "9" * 400, "0." + "0" * 400 + "1")]
TEXTS = [Raw(json.dumps(text)) for text in (
    "", "\0", "\n", "<|im_end|>", "<|im_start|>system\n", "\U0001f600", "\ufeff", "e\u0301" * 20, "user", "text",
    "a" * 3000, " " * 3000, "{{ 7*7 }}", "{% raw %}", "../../etc/passwd", "true", "-1")]
TEXTS += [Raw(text) for text in ('"\\ud800"', '"\\udc00\\ud800"', '"\\x"', '"\\u00"', '"', "'a'", '"a\nb"')]
OTHERS = [Raw(text) for text in (
    "null", "true", "false", "[]", "{}", "[[]]", "[null]", "[true,1,\"a\",{}]", "{\"a\":{\"a\":{}}}", "undefined", "",
    "[" * 63 + "]" * 63, "[" * 200 + "]" * 200, "[" * 5000, "{\"\":0}")]
NAMES = ["", "prompt", "messages", "stream", "max_tokens", "n", "content", "role", "__proto__",
         "a\r\nX-Injected: 1", "\0"]
SNIPPETS = [b"\r\n", b"\n", b"\r\n\r\n", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"-1",
            b"99999999999", b"HTTP/1.0", b"0\r\n\r\n", b"Host: evil\r\n", b"Content-Length: 0\r\n",
            b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"]


def to_members(value):
    if isinstance(value, dict):
        return Members([name, to_members(inner)] for name, inner in value.items())
    return [to_members(inner) for inner in value] if isinstance(value, list) else value


def written(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Members):
        return "{" + ",".join(json.dumps(name) + ":" + written(inner) for name, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def places(value):
    """(container, index) of everything in the tree; of a member the container is its pair."""
    for index, inner in enumerate(value):
        place = (inner, 1) if isinstance(value, Members) else (value, index)
        yield place
        if isinstance(place[0][place[1]], list):
            yield from places(place[0][place[1]])


def containers(value):
    yield value
    for holder, index in places(value):
        if isinstance(holder[index], list):
            yield holder[index]


def make_long(rng, root):
    """A valid answer that takes far longer than the client waits."""
    root[:] = [pair for pair in root if pair[0] not in ("max_tokens", "ignore_eos", "min_tokens")]
    root += [["max_tokens", rng.choice((4096, 8000))], ["ignore_eos", True]]


def change_structure(rng, root):
    spots = list(places(root))
    holder, index = rng.choice(spots) if spots else (Members([["a", None]])[0], 1)
    action = rng.randrange(8)
    if action <= 2:
        holder[index] = rng.choice(rng.choice((NUMBERS, TEXTS, OTHERS)))
    elif action == 3:
        holder[index] = rng.choice(([holder[index]], Members([["a", holder[index]]]), [holder[index]] * 20))
    elif action == 4 and spots:
        other, at = rng.choice(spots)
        holder[index] = Raw(written(other[at]))
    else:
        change_members(rng, rng.choice(list(containers(root))), action)


def change_members(rng, inside, action):
    if action == 5 and inside:
        del inside[rng.randrange(len(inside))]
    elif action == 6 and inside:
        twin = inside[rng.randrange(len(inside))]
        inside.insert(rng.randrange(len(inside) + 1), list(twin) if isinstance(inside, Members) else twin)
    elif isinstance(inside, Members):
        donor = to_members(rng.choice(REQUESTS)[1])
        inside.append(rng.choice([*donor, [rng.choice(NAMES), rng.choice(NUMBERS + OTHERS)]]))
    else:
        inside.append(rng.choice(NUMBERS + TEXTS + OTHERS))


def change_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        begin = rng.randrange(len(data) + 1)
        end = min(len(data), begin + rng.choice((1, 1, 2, 4, 16, 64)))
        action = rng.randrange(6)
        if action == 0 and begin < len(data):
            data[begin] ^= 1 << rng.randrange(8)
        elif action == 1:
            del data[begin:end]
        elif action == 2:
            data[begin:begin] = data[begin:end] * rng.choice((1, 2, 50))
        elif action == 3:
            data[begin:end] = rng.randbytes(end - begin)
        elif action == 4:
            data[begin:begin] = rng.choice(SNIPPETS)
        elif rng.random() < 0.3:
            del data[begin:]
    return bytes(data)


def valid_request(rng):
    path, body = rng.choice(REQUESTS)
    return path, to_members(body)


def mutated(rng: random.Random):
    path, body = valid_request(rng)
    kind = rng.choices(("structure", "body", "http", "splice"), (50, 15, 25, 10))[0]
    if kind == "structure" and rng.random() < LONG_SHARE:
        make_long(rng, body)
    elif kind == "structure":
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            change_structure(rng, body)
    if kind == "structure":
        return kind, request_bytes("POST", path, written(body).encode()), True
    if kind == "body":
        return kind, request_bytes("POST", path, change_bytes(rng, written(body).encode())), True
    whole = request_bytes("POST", path, written(body).encode())
    if kind == "http":
        return kind, change_bytes(rng, whole), False
    other_path, other = valid_request(rng)
    second = request_bytes("POST", other_path, written(other).encode())
    return kind, whole[:rng.randrange(len(whole))] + second[rng.randrange(len(second)):], False
