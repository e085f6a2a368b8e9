#!/usr/bin/env python3
"""Talks to a running server with OpenAI's own client.

Usage: openai_client_test.py [BASE_URL] [--no-chat]     (default http://127.0.0.1:8080/v1)
Exits 0 when every check holds, 1 when one does not, and 77 (skipped) when the openai package is missing.
"""
import sys
from array import array

try:
    import openai
except ImportError:
    print("skipped: the openai package is not installed (pip install openai)")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "Name three primary colours."}]


def chat_streams(client, model):
    text, roles, reasons, usage = "", [], [], None
    stream = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=24, temperature=0, stream=True,
        stream_options={"include_usage": True})
    for chunk in stream:
        if chunk.usage is not None:
            assert chunk.choices == [], "usage comes in a chunk without choices"
            usage = chunk.usage
            continue
        choice = chunk.choices[0]
        roles += [choice.delta.role] if choice.delta.role else []
        reasons += [choice.finish_reason] if choice.finish_reason else []
        text += choice.delta.content or ""
    assert text and roles == ["assistant"] and len(reasons) == 1, (text, roles, reasons)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    return text


def chat_in_one_piece_equals_the_stream(client, model, streamed):
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=24, temperature=0)
    assert answer.choices[0].message.content == streamed, (answer.choices[0].message.content, streamed)


def chat_logprobs(client, model):
    answer = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=4, temperature=0, logprobs=True, top_logprobs=3)
    for token in answer.choices[0].logprobs.content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3, token
        assert bytes(token.bytes).decode("utf-8", "replace") == token.token, token


def completion(client, model):
    answer = client.completions.create(model=model, prompt="Once upon a time", max_tokens=16, temperature=0)
    assert answer.choices[0].text and answer.usage.completion_tokens <= 16, answer
    pieces = [chunk.choices[0].text for chunk in client.completions.create(
        model=model, prompt="Once upon a time", max_tokens=16, temperature=0, stream=True)]
    assert "".join(pieces) == answer.choices[0].text, (pieces, answer)


def completion_scores_a_prompt(client, model):
    answer = client.completions.create(
        model=model, prompt=["The sky is blue", "Two and two is four"], max_tokens=0, echo=True, logprobs=1)
    assert [c.index for c in answer.choices] == [0, 1], answer
    for choice in answer.choices:
        logprobs = choice.logprobs
        assert logprobs.token_logprobs[0] is None and all(x <= 0 for x in logprobs.token_logprobs[1:]), logprobs
        assert len(logprobs.tokens) == len(logprobs.text_offset) == len(logprobs.token_logprobs), logprobs


def several_choices(client, model):
    answer = client.completions.create(model=model, prompt="One, two,", max_tokens=4, n=3, seed=7)
    assert [c.index for c in answer.choices] == [0, 1, 2], answer
    again = client.completions.create(model=model, prompt="One, two,", max_tokens=4, n=3, seed=7)
    assert [c.text for c in again.choices] == [c.text for c in answer.choices], "same seed, same text"


def embeddings(client, model):
    texts = ["A cat sat on the mat.", "The dog lay on the rug.", "Interest rates rose again."]
    answer = client.embeddings.create(model=model, input=texts)  # base64, unless one asks otherwise
    floats = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert [e.index for e in answer.data] == [0, 1, 2] and answer.usage.total_tokens > 12, answer.usage
    for coded, plain in zip(answer.data, floats.data):
        assert array("f", coded.embedding) == array("f", plain.embedding), "both encodings say the same"
        assert abs(sum(x * x for x in plain.embedding) - 1) < 1e-5, "of length 1"
    one = client.embeddings.create(model=model, input=texts[1]).data[0].embedding
    assert one == answer.data[1].embedding, "alone as in company"


def errors_have_their_types(client, model):
    def raised(kind, **arguments):
        try:
            client.chat.completions.create(**{"model": model, "messages": MESSAGES, **arguments})
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__}")

    assert raised(openai.NotFoundError, model="no-such-model").code == "model_not_found"
    assert raised(openai.BadRequestError, temperature=9).param == "temperature"
    assert raised(openai.BadRequestError, max_tokens=10**9).code == "context_length_exceeded"
    assert raised(openai.BadRequestError, response_format={"type": "json_object"}).param == "response_format"


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    client = openai.OpenAI(base_url=arguments[0] if arguments else "http://127.0.0.1:8080/v1", api_key="none",
                           max_retries=0)
    models = client.models.list().data
    model = models[0].id
    assert client.models.retrieve(model).id == model
    if "--no-chat" not in sys.argv:
        streamed = chat_streams(client, model)
        print(f"chat: {streamed!r}")
        chat_in_one_piece_equals_the_stream(client, model, streamed)
        chat_logprobs(client, model)
        errors_have_their_types(client, model)
    completion(client, model)
    completion_scores_a_prompt(client, model)
    several_choices(client, model)
    embeddings(client, model)
    print(f"{model}: every check holds")


if __name__ == "__main__":
    main()
