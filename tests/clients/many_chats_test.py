#!/usr/bin/env python3
"""Sends many chats and completions at once through the package `openai`, with the server's own settings.

64 chats, whole and streamed, then a smaller form of what bench/load/burst.py sends in full: completions as
`vllm bench serve` asks for them. Every one must be answered, with as many tokens as it asked for.

Usage: many_chats_test.py [--model NAME]
Exits 0 when all are answered, 1 when one is not, and 77 (skipped) without binary, model or package.
"""
import argparse
import asyncio
import sys

import served

NUM_CHATS, NUM_COMPLETIONS, ANSWER_TOKENS = 64, 100, 8
PROMPT = "The river runs past the mill and the old bridge. "


async def chat(client, model, index):
    messages = [{"role": "user", "content": f"Name {index + 2} colours."}]
    bounds = {"max_tokens": ANSWER_TOKENS, "temperature": 0, "extra_body": {"ignore_eos": True}}
    if index % 2 == 0:
        answer = await client.chat.completions.create(model=model, messages=messages, **bounds)
        return answer.choices[0].message.content, answer.usage.completion_tokens
    return await joined(await client.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}, **bounds))


async def completion(client, model, index):
    """As `vllm bench serve` sends one to its backend `openai`."""
    return await joined(await client.completions.create(
        model=model, prompt=f"{index}: " + PROMPT * 8, temperature=0, max_tokens=ANSWER_TOKENS, stream=True,
        stream_options={"include_usage": True}, logprobs=None,
        extra_body={"repetition_penalty": 1.0, "ignore_eos": True, "min_tokens": ANSWER_TOKENS}))


async def joined(stream):
    text, num_tokens = "", 0
    async for chunk in stream:
        for choice in chunk.choices:
            text += (choice.delta.content if hasattr(choice, "delta") else choice.text) or ""
        if chunk.usage:
            num_tokens = chunk.usage.completion_tokens
    return text, num_tokens


async def all_at_once(url, model, ask, count):
    """Whether every answer is whole; prints the first that is not."""
    import httpx
    import openai
    http = httpx.AsyncClient(limits=httpx.Limits(max_connections=count), timeout=600)
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0, http_client=http) as client:
        answers = await asyncio.gather(*(ask(client, model, index) for index in range(count)), return_exceptions=True)
    print(f"{count} of {ask.__name__}: {sum(isinstance(answer, tuple) for answer in answers)} answered")
    for index, answer in enumerate(answers):
        if isinstance(answer, BaseException):
            wrong = f"{type(answer).__name__}: {answer}"
        elif not answer[0] or answer[1] != ANSWER_TOKENS:
            wrong = f"{answer[0]!r}, {answer[1]} tokens"
        else:
            continue
        print(f"FAILED {ask.__name__} {index}: {wrong}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2:135m")
    model = parser.parse_args().model
    served.need_model(model)
    served.run_in_venv(["openai", "httpx"])
    with served.serving(model) as server:
        held = [asyncio.run(all_at_once(server.url, model, ask, count))
                for ask, count in ((chat, NUM_CHATS), (completion, NUM_COMPLETIONS))]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
