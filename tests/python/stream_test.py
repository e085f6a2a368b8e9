"""Answers in pieces: with threads, with asyncio, and their end when they are not wanted any more."""
from __future__ import annotations

import asyncio
import gc
import threading

import pytest

import kvasir
from conftest import wait_until_idle

GREEDY = kvasir.SamplingParams(temperature=0, max_tokens=16, ignore_eos=True)
# To the end of the context, 64 at once: the tiny model alone would be done before a busy machine runs the test on.
LONG = kvasir.SamplingParams(temperature=0, ignore_eos=True, n=64)


def test_the_pieces_are_the_answer(llm: kvasir.LLM) -> None:
    answer = llm.generate("the quick", GREEDY, logprobs=1)
    pieces = list(llm.stream("the quick", GREEDY, logprobs=1))
    assert "".join(piece.text for piece in pieces) == answer.text
    assert [token for piece in pieces for token in piece.token_ids] == answer.token_ids
    assert [position for piece in pieces for position in piece.logprobs] == answer.logprobs
    assert [piece.finish_reason for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert pieces[-1].usage.completion_tokens == 16


def test_asyncio_gets_the_same_pieces(llm: kvasir.LLM) -> None:
    async def collect(prompt: str) -> str:
        return "".join([piece.text async for piece in llm.stream(prompt, GREEDY)])

    async def collect_many() -> list[str]:
        return await asyncio.gather(*[collect(prompt) for prompt in ["the quick", "a brown fox"] * 20])

    expected = [llm.generate(prompt, GREEDY).text for prompt in ("the quick", "a brown fox")]
    assert asyncio.run(collect_many()) == expected * 20


def test_a_chat_streams_too(llm: kvasir.LLM) -> None:
    messages = [{"role": "user", "content": "hi"}]
    assert "".join(piece.text for piece in llm.stream_chat(messages, GREEDY)) == llm.chat(messages, GREEDY).text


def test_the_loop_goes_on_while_a_stream_waits(llm: kvasir.LLM) -> None:
    async def tick(ticks: list[int]) -> None:
        while True:
            ticks.append(0)
            await asyncio.sleep(0)

    async def run() -> int:
        ticks: list[int] = []
        ticking = asyncio.create_task(tick(ticks))
        async for _ in llm.stream("the quick", LONG, max_tokens=200):
            pass
        ticking.cancel()
        return len(ticks)

    assert asyncio.run(run()) > 100


def test_several_choices_arrive_mixed_and_complete(llm: kvasir.LLM) -> None:
    tokens: dict[int, list[int]] = {}
    for piece in llm.stream("the quick", n=3, temperature=1.5, seed=1, max_tokens=8, ignore_eos=True):
        tokens.setdefault(piece.index, []).extend(piece.token_ids)
    answer = llm.generate("the quick", n=3, temperature=1.5, seed=1, max_tokens=8, ignore_eos=True)
    assert tokens == {choice.index: choice.token_ids for choice in answer.choices}


def expect_freed(llm: kvasir.LLM, steps: int, cancelled: int) -> None:
    """Nothing runs any more after at most the step that was under way, and the one that was being counted."""
    stats = wait_until_idle(llm)
    assert stats["num_steps"] <= steps + 2
    assert stats["num_requests_cancelled"] == cancelled + 1
    assert stats["kv_blocks_used"] == 0


def test_leaving_the_loop_ends_the_request_within_a_step(llm: kvasir.LLM) -> None:
    cancelled = wait_until_idle(llm)["num_requests_cancelled"]
    for piece in llm.stream("the quick", LONG):
        if piece.usage.completion_tokens >= 5:
            break
    expect_freed(llm, llm.stats()["num_steps"], cancelled)


def test_leaving_an_asynchronous_loop_ends_the_request_within_a_step(llm: kvasir.LLM) -> None:
    async def leave() -> int:
        async for piece in llm.stream("the quick", LONG):
            if piece.usage.completion_tokens >= 5:
                break
        return llm.stats()["num_steps"]

    cancelled = wait_until_idle(llm)["num_requests_cancelled"]
    expect_freed(llm, asyncio.run(leave()), cancelled)


def test_cancelling_the_task_ends_the_request_within_a_step(llm: kvasir.LLM) -> None:
    async def read(started: asyncio.Event) -> None:
        async for _ in llm.stream("the quick", LONG):
            started.set()

    async def cancel() -> int:
        started = asyncio.Event()
        task = asyncio.create_task(read(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return llm.stats()["num_steps"]

    cancelled = wait_until_idle(llm)["num_requests_cancelled"]
    expect_freed(llm, asyncio.run(cancel()), cancelled)


def test_a_timeout_ends_the_request(llm: kvasir.LLM) -> None:
    async def read() -> None:
        async for _ in llm.stream("the quick", LONG):
            await asyncio.sleep(0.01)

    async def hurry() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(read(), 0.05)

    asyncio.run(hurry())
    wait_until_idle(llm)


def test_a_stream_ends_when_closed_left_or_dropped(llm: kvasir.LLM) -> None:
    cancelled = wait_until_idle(llm)["num_requests_cancelled"]
    stream = llm.stream("the quick", LONG)
    next(stream)
    stream.close()
    assert list(stream) == []
    with llm.stream("the quick", LONG) as stream:
        next(stream)
    assert list(stream) == []
    stream = llm.stream("the quick", LONG)
    del stream
    gc.collect()

    async def leave() -> None:
        async with llm.stream("the quick", LONG) as stream:
            await stream.__anext__()
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()

    asyncio.run(leave())
    assert wait_until_idle(llm)["num_requests_cancelled"] == cancelled + 4


def test_a_second_task_does_not_wait_for_the_same_stream(llm: kvasir.LLM) -> None:
    async def read() -> int:
        stream = llm.stream("the quick", LONG, n=1, max_tokens=200)

        async def count() -> int:
            return len([piece async for piece in stream])

        counts = await asyncio.gather(count(), count(), return_exceptions=True)
        assert isinstance(counts[1], kvasir.UsageError), counts
        assert str(counts[1]) == "stream: another task is waiting for its next piece"
        assert isinstance(counts[0], int)
        return counts[0]

    assert asyncio.run(read()) == 200


def test_a_stream_that_another_task_closes_gives_nothing_more(llm: kvasir.LLM) -> None:
    async def read() -> None:
        stream = llm.stream("the quick", LONG, n=1)
        pieces: list[kvasir.Piece] = []

        async def collect() -> None:
            async for piece in stream:
                pieces.append(piece)

        task = asyncio.create_task(collect())
        while not pieces:
            await asyncio.sleep(0)
        stream.close()
        count = len(pieces)
        await task
        assert len(pieces) == count

    asyncio.run(read())


def test_a_stream_that_is_over_stays_over(llm: kvasir.LLM) -> None:
    stream = llm.stream("the quick", GREEDY)
    assert len(list(stream)) == 16
    assert list(stream) == []
    stream.close()


def test_what_cannot_be_streamed_is_refused_at_once(llm: kvasir.LLM) -> None:
    with pytest.raises(kvasir.UsageError, match="prompt: a stream has one"):
        llm.stream(["a", "b"])  # type: ignore[list-item]
    with pytest.raises(kvasir.UsageError, match="top_p"):
        llm.stream("a", top_p=2.0)


def test_threads_get_their_own_answers(llm: kvasir.LLM) -> None:
    prompts = ["the quick", "a brown fox", "jumps", "over the lazy dog"]
    expected = {prompt: llm.generate(prompt, GREEDY).text for prompt in prompts}
    wrong: list[str] = []

    def work(prompt: str) -> None:
        for _ in range(5):
            if llm.generate(prompt, GREEDY).text != expected[prompt]:
                wrong.append(prompt)
            if "".join(piece.text for piece in llm.stream(prompt, GREEDY)) != expected[prompt]:
                wrong.append(prompt)
            llm.embed(prompt)
            llm.score(prompt)

    threads = [threading.Thread(target=work, args=(prompt,)) for prompt in prompts * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    wait_until_idle(llm)
