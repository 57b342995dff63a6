"""Prompt caching: send one of the requests with the same skill block before the others.

A host can read a block from its cache only once the first answer to it has begun. If they were
sent together, all would pay for writing it, which costs 1.25 times its price instead of a tenth.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pytest_upskill.completion import Request

_BYTES_PER_TOKEN = 3
"""Fewer than usual: waiting in vain takes the time of one answer, but not waiting costs money."""

_MIN_TOKENS = 512
_MIN_TOKENS_BY_MODEL = (
    (re.compile(r"claude-(sonnet-5$|sonnet-4-5|sonnet-4-6|opus-4-8)"), 1024),
    (re.compile(r"claude-opus-4-7"), 2048),
    (re.compile(r"claude-(haiku-4-5|opus-4-5|opus-4-6)"), 4096),
)
"""Minimum length that Anthropic's older models cache, as of November 2026; newer ones cache 512."""


class PromptCacheWarmup:
    """A queue in which requests with the same skill block wait for the first of them."""

    def __init__(self) -> None:
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held by the first request of each block, by model name and block."""
        self._warm: set[tuple[str, str]] = set()
        """The blocks whose first request has ended."""

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait until the first request with the same block has ended, then send in the block."""
        block = (request.model.name, request.skill)
        if block not in self._warm and _is_cached(request):
            async with self._locks[block]:
                if block not in self._warm:
                    try:
                        yield
                    finally:
                        # After a failure too, or the others would be sent one after the other.
                        self._warm.add(block)
                    return
        yield


def _is_cached(request: Request) -> bool:
    """Check whether a host is likely to cache the request's skill block."""
    if not request.skill:
        return False
    name, size = request.model.name, len(request.system.encode("utf-8", "replace"))
    minimums = (tokens for pattern, tokens in _MIN_TOKENS_BY_MODEL if pattern.match(name))
    return size / _BYTES_PER_TOKEN >= next(minimums, _MIN_TOKENS)
