"""Requirements of an answer: those of every answer, and those of a case besides.

`expect` of a case:
  status, param, code, says    of an error: says lists parts of the message. type comes from the status
  retry_after                  the error says when to come again
  finish                       list of what every choice's finish_reason may be
  text, texts                  the first choice's text; all choices'
  contains, lacks              parts of the first choice's text
  starts, matches              how every choice's text begins; the regular expression of the whole of it
  object                       {"name": "string", ...}: every choice's text is an object of just these members
  texts_of, texts_differ_from  another case with the same texts, or with others
  text_cut                     {"case", "from", "to", "kept"}: that case's text before that piece of it (kept: and it)
  same_texts                   true: all choices say the same; false: not all do
  whole_characters             no piece of a stream ends within a character
  prompt_tokens, completion_tokens, cached    of the usage; cached true: more than none
  tokens                       the tokens that logprobs names
  tool_calls                   [[name, arguments]...] of each choice
  vectors, vector_of           how many embeddings; {"case", "mine", "theirs"}: the same vector as another case's
  json                         {"/a/0/b": value} of the whole answer; value null: must be there and null
"""
import json
import re

from logprob_checks import check_logprobs

NAMES_OF_ERRORS = {400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError",
                   404: "NotFoundError", 429: "RateLimitError"}
TYPE_OF_ERRORS = "invalid_request_error"  # and of 429 this:
TYPE_OF_TOO_MANY = "rate_limit_error"
NAMES_OF_OVERFLOWS = {  # of clients that have a class for it, from which an application goes on to another model
    ("litellm", "chat"): "ContextWindowExceededError", ("litellm", "completions"): "ContextWindowExceededError",
    ("litellm", "embeddings"): "ContextWindowExceededError", ("langchain", "chat"): "ContextOverflowError"}
TYPES_OF_MESSAGES_ERRORS = {401: "authentication_error", 404: "not_found_error", 413: "request_too_large",
                            429: "rate_limit_error"}
PLAIN_CLIENTS = ("raw", "websocket", "grpc")  # that show what the server sends, and raise no errors of their own
OBJECTS = {"chat": "chat.completion", "completions": "text_completion"}
MESSAGES = ("messages", "count_tokens")  # endpoints of Anthropic's protocol
ENDS = {"messages": ["end_turn", "max_tokens"]}  # of an answer, unless a case says otherwise
ALWAYS_WITH_USAGE = ("messages", "responses")
CHATS = ("chat", "messages", "responses")
TYPES_OF_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object",
                 type(None): "null"}
LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def equal(found, wanted, what):
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def check_refusal(case, client_name, blind, error):
    expect = case.expect
    assert "status" in expect, f"refused: {error}"
    equal(error.status, expect["status"], "status")
    if client_name not in PLAIN_CLIENTS:
        name = NAMES_OF_ERRORS[error.status]
        if expect.get("code") == "context_length_exceeded":
            name = NAMES_OF_OVERFLOWS.get((client_name, case.endpoint), name)
        assert name in error.kinds, f"raised {error.kinds[:3]} instead of {name}"
    if case.endpoint in MESSAGES:
        wanted = {"type": TYPES_OF_MESSAGES_ERRORS.get(error.status, TYPE_OF_ERRORS)}
    else:
        wanted = {"type": TYPE_OF_TOO_MANY if error.status == 429 else TYPE_OF_ERRORS}
        wanted |= {field: expect[field] for field in ("param", "code") if field in expect}
    for field, value in wanted.items():
        if field not in error.error and "error_fields" in blind:
            continue
        equal(error.error.get(field, "nothing"), value, f"error.{field}")
    for part in expect.get("says", []):
        assert part in error.error["message"], f"{part!r} is not in {error.error['message']!r}"
    if expect.get("retry_after") and "retry_after" not in blind:
        assert int(error.retry_after) >= 1, f"Retry-After: {error.retry_after}"


def check_answer(case, blind, answer, answer_of):
    assert "status" not in case.expect, f"answered instead of {case.expect['status']}: {answer.objects[0]}"
    if case.endpoint in ("completions", *CHATS):
        check_envelope(case, blind, answer)
        check_choices(case, blind, answer)
        check_usage(case, blind, answer)
        check_texts(case, answer, answer_of)
        check_logprobs(case, answer)
    elif case.endpoint == "embeddings":
        check_embeddings(case, answer, answer_of)
    check_json(case, answer)


def check_envelope(case, blind, answer):
    if "envelope" in blind:
        return
    wanted = OBJECTS.get(case.endpoint)
    if answer.streamed and case.endpoint == "chat":
        wanted += ".chunk"
    for part in answer.objects:
        equal(part.get("object"), wanted, "object")
        equal(part["model"], case.request.get("model", part["model"]), "model")
    ids = {(part["id"], part.get("created")) for part in answer.objects}
    assert len(ids) == 1, f"one id and one time for all chunks: {ids}"


def number_of_choices(request):
    prompt = request.get("prompt")
    several = isinstance(prompt, list) and prompt and not isinstance(prompt[0], int)
    return (len(prompt) if several else 1) * (request.get("n") or 1)


def check_choices(case, blind, answer):
    equal([choice.index for choice in answer.choices], list(range(number_of_choices(case.request))), "indices")
    wanted = case.expect.get("finish", ENDS.get(case.endpoint, ["stop", "length"]))
    for choice in answer.choices:
        equal(len(choice.finish_reasons), 1, f"number of finish reasons of choice {choice.index}")
        assert choice.finish_reason in wanted, f"finish_reason {choice.finish_reason!r}, not {wanted!r}"
        if case.endpoint in CHATS and "role" not in blind:
            equal(choice.roles, ["assistant"], f"roles of choice {choice.index}")
    if "tool_calls" in case.expect:
        check_tool_calls(case.expect["tool_calls"], answer)
    else:
        equal([choice.tool_calls for choice in answer.choices], [[]] * len(answer.choices), "tool calls")


def check_tool_calls(wanted, answer):
    for choice in answer.choices:
        found = [[call["name"], json.loads(call["arguments"])] for call in choice.tool_calls]
        equal(found, wanted, "tool calls")
        ids = [call["id"] for call in choice.tool_calls]
        assert all(ids) and len(set(ids)) == len(ids), f"ids of calls: {ids}"


def check_usage(case, blind, answer):
    request, expect = case.request, case.expect
    always = case.endpoint in ALWAYS_WITH_USAGE
    if answer.streamed and not always and not (request.get("stream_options") or {}).get("include_usage"):
        equal(answer.usage, None, "usage, which nobody asked for")
        return
    usage = answer.usage
    assert usage, "no usage"
    equal(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"], "total_tokens")
    if answer.streamed and not always and "usage_chunk" not in blind:
        equal(answer.objects[-1].get("choices"), [], "choices of the last chunk, which has the usage")
        if not request["stream_options"].get("continuous_usage_stats"):
            equal(len(answer.usages), 1, "chunks with usage")
    for field in ("prompt_tokens", "completion_tokens"):
        if field in expect:
            equal(usage[field], expect[field], field)
    limit = next((request[name] for name in LIMITS if request.get(name)), None)
    if limit is not None and all(choice.finish_reason in ("length", "max_tokens") for choice in answer.choices):
        equal(usage["completion_tokens"], limit * len(answer.choices), "completion_tokens")
    if "cached" in expect:
        found = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        equal(found > 0, expect["cached"], f"{found} cached tokens")


def check_texts(case, answer, answer_of):
    expect, texts = case.expect, answer.texts
    if "text" in expect:
        equal(texts[0], expect["text"], "text")
    if "texts" in expect:
        equal(texts, expect["texts"], "texts")
    for text in texts:
        check_form(expect, text)
    for part in expect.get("contains", []):
        assert part in texts[0], f"{part!r} is not in {texts[0]!r}"
    for part in expect.get("lacks", []):
        assert part not in texts[0], f"{part!r} is in {texts[0]!r}"
    if "texts_of" in expect:
        equal(texts, answer_of(expect["texts_of"]).texts, f"texts of {expect['texts_of']!r}")
    if "texts_differ_from" in expect:
        assert texts != answer_of(expect["texts_differ_from"]).texts, f"as {expect['texts_differ_from']!r}: {texts}"
    if "text_cut" in expect:
        equal(texts[0], cut(expect["text_cut"], answer_of), "text that a stop ends")
    if "same_texts" in expect:
        equal(len(set(texts)) == 1, expect["same_texts"], f"all the same in {texts}")
    if expect.get("whole_characters"):
        pieces = [piece for choice in answer.choices for piece in choice.pieces]
        assert not texts[0].isascii() and not any("\ufffd" in piece for piece in pieces), pieces


def check_form(expect, text):
    if "starts" in expect:
        assert text.startswith(expect["starts"]), f"{text!r} does not start with {expect['starts']!r}"
    if "matches" in expect:
        assert re.fullmatch(expect["matches"], text), f"{text!r} is not of {expect['matches']!r}"
    if "object" in expect:
        found = {name: TYPES_OF_JSON[type(value)] for name, value in json.loads(text).items()}
        equal(found, expect["object"], f"members of {text!r}")


def cut(wanted, answer_of):
    whole = answer_of(wanted["case"]).texts[0]
    stop = whole[wanted["from"]:wanted["to"]]
    return whole[:whole.index(stop) + (len(stop) if wanted.get("kept") else 0)]


def check_embeddings(case, answer, answer_of):
    vectors = answer.embeddings
    equal(len(vectors), case.expect["vectors"], "embeddings")
    equal([item["index"] for item in answer.objects[0]["data"]], list(range(len(vectors))), "indices")
    for vector in vectors:
        assert abs(sum(x * x for x in vector) - 1) < 1e-5, "an embedding has length 1"
    equal(len({len(vector) for vector in vectors}), 1, "one number of dimensions")
    usage = answer.usage
    if usage:
        equal(usage["total_tokens"], case.expect.get("prompt_tokens", usage["prompt_tokens"]), "total_tokens")
    if "vector_of" in case.expect:
        same = case.expect["vector_of"]
        mine, theirs = vectors[same.get("mine", 0)], answer_of(same["case"]).embeddings[same.get("theirs", 0)]
        equal(mine == theirs, same.get("equal", True), f"{mine[:3]} as {theirs[:3]}")


def check_json(case, answer):
    for pointer, wanted in case.expect.get("json", {}).items():
        found = answer.objects[0]
        for word in pointer.strip("/").split("/"):
            found = found[int(word)] if isinstance(found, list) else found[word]
        equal(found, wanted, pointer)
