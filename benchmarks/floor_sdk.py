"""The floor of fetching: the same SDK in a bare asyncio script, no pytest, nothing checked.

python benchmarks/floor_sdk.py openai http://127.0.0.1:8099 --requests 120 --concurrency 20
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable

Ask = Callable[[str], Awaitable[object]]

SYSTEM = "Answer.\n\n<skill>\n" + "Facts are known by their number.\n" * 66 + "</skill>"


def openai_ask(url: str) -> Ask:
    """Send chat completions."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return lambda text: client.chat.completions.create(
        model="m",
        max_tokens=8192,
        messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
    )


def anthropic_ask(url: str) -> Ask:
    """Send messages."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    return lambda text: client.messages.create(
        model="m", max_tokens=8192, system=SYSTEM, messages=[{"role": "user", "content": text}]
    )


async def main(ask: Ask, requests: int, concurrency: int) -> None:
    """Send every request, so many at a time."""
    free = asyncio.Semaphore(concurrency)

    async def one(number: int) -> None:
        async with free:
            await ask(f"What is fact {number}?")

    await asyncio.gather(*map(one, range(requests)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sdk", choices=["openai", "anthropic"])
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    args = parser.parse_args()
    make = openai_ask if args.sdk == "openai" else anthropic_ask
    asyncio.run(main(make(args.url), args.requests, args.concurrency))
