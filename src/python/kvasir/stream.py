"""An answer in pieces, for threads and for asyncio."""
from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from . import _kvasir
from .errors import usage_error
from .results import Piece, piece_of

if TYPE_CHECKING:
    from .llm import LLM


class Stream:
    """Iterate over it with `for` or `async for`, in one thread or task at a time.

    The request runs from the start and ends within a step when the stream is dropped (as leaving a loop over
    `llm.stream(...)` does), closed, left by `with`, or when the task that waits for it is cancelled.
    """

    def __init__(self, llm: LLM, pending: _kvasir.Pending) -> None:
        self._llm = llm  # an engine ends with its LLM
        self._pending = pending
        self._outputs: deque[_kvasir.Output] = deque()
        self._closed = False
        self._is_awaited = False

    def close(self) -> None:
        """Ends the request. Nothing comes any more."""
        self._pending.cancel()
        self._closed = True
        self._outputs.clear()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        if not self._outputs and not self._is_over():
            try:
                self._take(wait=True)
            except BaseException:
                self.close()
                raise
        if not self._outputs:
            raise StopIteration
        return piece_of(self._outputs.popleft())

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Piece:
        if self._is_awaited:
            raise usage_error("stream: another task is waiting for its next piece", "stream")
        self._is_awaited = True
        try:
            if self._outputs:  # an answer that comes faster than it is read leaves the loop to others too
                await asyncio.sleep(0)
            while not self._outputs and not self._is_over():
                self._take(wait=False)
                if not self._outputs and not self._is_over():
                    await self._readable()
        except BaseException:
            self.close()
            raise
        finally:
            self._is_awaited = False
        if not self._outputs:
            raise StopAsyncIteration
        return piece_of(self._outputs.popleft())

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        self.close()

    def _take(self, *, wait: bool) -> None:
        self._outputs.extend(self._pending.take(wait=wait))
        if self._closed:  # meanwhile, by another task or thread
            self._outputs.clear()

    def _is_over(self) -> bool:
        return self._closed or self._pending.finished

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def arrive() -> None:
            if not arrived.done():
                arrived.set_result(None)

        descriptor = self._pending.fileno()
        loop.add_reader(descriptor, arrive)
        try:
            await arrived
        finally:
            loop.remove_reader(descriptor)
