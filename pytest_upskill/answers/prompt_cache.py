"""Prompt caching: send one of the requests with the same skill block before the others.

A host can read a block from its cache only once the first answer to it has begun; sent together,
all would pay for writing it, 1.25 times its price instead of a tenth or less.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pytest_upskill.completion import Request

_BYTES_PER_TOKEN = 3
"""Fewer than usual: waiting in vain costs one answer's time, not waiting costs money."""

_LEAST_TOKENS = 512
_LEAST_TOKENS_OF = (
    (re.compile(r"claude-(sonnet-5$|sonnet-4-5|sonnet-4-6|opus-4-8)"), 1024),
    (re.compile(r"claude-opus-4-7"), 2048),
    (re.compile(r"claude-(haiku-4-5|opus-4-5|opus-4-6)"), 4096),
)
"""What Anthropic's older models cache at least, as of November 2026; newer ones cache 512."""


class PromptCacheWarmup:
    """A queue in which requests with the same skill block wait for the first of them."""

    def __init__(self) -> None:
        self._first: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._through: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait for the first request of the same block, or be it."""
        block = (request.model.name, request.skill)
        if block not in self._through and _is_cached(request):
            async with self._first[block]:
                if block not in self._through:
                    try:
                        yield
                    finally:
                        # After a failure too: one first call after the other would take ages.
                        self._through.add(block)
                    return
        yield


def _is_cached(request: Request) -> bool:
    """Check whether a host is likely to cache the request's skill block."""
    name, tokens = request.model.name, len(request.system.encode("utf-8", "replace"))
    known = (least for pattern, least in _LEAST_TOKENS_OF if pattern.match(name))
    least = next(known, _LEAST_TOKENS)
    return bool(request.skill) and tokens / _BYTES_PER_TOKEN >= least
