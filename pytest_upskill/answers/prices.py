"""Prices of completions, and upper bounds on those of requests.

Prices are those of the user's settings, or else of genai-prices.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from pytest_upskill.models import Completion, Model, Request, RunLimits, Tool, Turn
from pytest_upskill.models.hosts import BY_PREFIX

BYTES_PER_TOKEN = 4
"""Mean number of bytes of a token, in prose and code alike, for estimates."""

_TEMPLATE_TOKENS = 64
"""Maximum number of tokens that an API adds to each message or tool, for roles and separators."""

_STEP = 100
"""Upper bounds count a prompt in steps of so many tokens, so that most prices are cached."""

_SURCHARGE = 0.25
"""What Anthropic adds to the price of input that it writes to its prompt cache, as a share of it.

Source: https://docs.claude.com/en/docs/build-with-claude/prompt-caching, for five minutes.
"""


class TokenCounts(NamedTuple):
    """The numbers of tokens that determine a price."""

    input_tokens: int
    """All prompt tokens, including cached ones."""
    output_tokens: int
    """All generated tokens."""
    cache_read_tokens: int = 0
    """The prompt tokens that were read from a cache."""
    cache_write_tokens: int = 0
    """The prompt tokens that were written to a cache for a surcharge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrice:
    """A price from the user's settings, in dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Price of cached input, at most that of other input; None if it is the same."""

    def of(self, counts: TokenCounts) -> float:
        """Return the price of a completion in dollars."""
        sent, received, read, written = counts
        cached_price = self.input if self.cached is None else self.cached
        dollars = self.input * (sent - read + _SURCHARGE * written)
        return (dollars + cached_price * read + self.output * received) / 1e6


class Prices:
    """The prices of the selected models; an unknown price is None, not 0.

    Args:
        own: Prices from the user's settings by label, which override genai-prices.
    """

    def __init__(self, own: Mapping[str, OwnPrice]) -> None:
        self._own = own
        # Slow to import, so it is imported with the first price.
        self._has_price_list = find_spec("genai_prices") is not None

    def cost(self, model: Model, completion: Completion) -> float | None:
        """Return the price of a completion in dollars, with cached and tiered rates, or None."""
        sent, received = completion.input_tokens, completion.output_tokens
        read, written = completion.cache_read_tokens, completion.cache_write_tokens
        if sent is None or received is None or read > sent:
            return None
        return self._price(model, TokenCounts(sent, received, read, written))

    def max_cost(self, request: Request) -> float | None:
        """Return an upper bound on the price of a request in dollars, None if unknown.

        That is the price of a single attempt, or of all requests that an agent's run may make.
        """
        input_tokens, output_tokens = max_input_tokens(request), max_output_tokens(request)
        if request.task is not None:
            input_tokens -= output_tokens  # The limit of a run is of both together.
        return self.max_cost_of_tokens(request.model, input_tokens, output_tokens)

    def max_cost_of_tokens(
        self, model: Model, input_tokens: int, output_tokens: int
    ) -> float | None:
        """Return an upper bound on the price of so many tokens in dollars, None if unknown."""
        rounded_up = math.ceil(input_tokens / _STEP) * _STEP
        # Writing to the vendor's prompt cache is more expensive than plain input.
        counts = TokenCounts(rounded_up, output_tokens, cache_write_tokens=rounded_up)
        return self._price(model, counts)

    def has_price(self, model: Model) -> bool:
        """Return whether a model has a price."""
        return self._price(model, TokenCounts(_STEP, _STEP)) is not None

    def problem(self, model: Model) -> str:
        """Return the message that a model has no price, and how to set one."""
        install = "" if self._has_price_list or model.base_url else "pip install genai-prices, or "
        return (
            f"no price is known for {model.address!r}: {install}set upskill_prices = "
            f'["{model.label} = IN/OUT"] (in pytest.ini: {model.label} = IN/OUT, without brackets '
            "and quotes) in dollars for a million tokens"
        )

    def _price(self, model: Model, counts: TokenCounts) -> float | None:
        if not model.is_language_model:
            return 0.0
        if model.label in self._own:
            host = BY_PREFIX.get(model.provider)
            if host is None or host.wire != "anthropic":
                # Only requests in this format ask a host to write to its prompt cache.
                counts = counts._replace(cache_write_tokens=0)
            return self._own[model.label].of(counts)
        # A user's own server may have any price, even for a model with a vendor's name. The list
        # identifies vendors by their URLs, all https, so it need not be imported for other URLs.
        own_server = model.base_url is not None and not model.base_url.startswith("https:")
        return None if own_server or not self._has_price_list else _list_price(model, counts)


@lru_cache(maxsize=4096)  # a price takes 0.2 ms, and answers of a model are often equally long
def _list_price(model: Model, counts: TokenCounts) -> float | None:
    from genai_prices import Usage, calc_price

    usage, name, vendor = Usage(**counts._asdict()), model.name, model.vendor
    url = None if vendor else model.base_url
    if vendor is not None and vendor.prefix == "hf" and ":" in name:
        # Hugging Face's router charges the prices of the host behind it.
        name, _, real_host = name.rpartition(":")
        url = f"https://router.huggingface.co/{real_host}"
    provider = vendor.prefix if vendor else model.provider
    try:
        if url:
            price = calc_price(usage, name, provider_api_url=url)
        else:
            price = calc_price(usage, name, provider_id=provider)
    except (LookupError, ValueError):  # no such model; counts that contradict each other
        return None
    return float(price.total_price)


def max_input_tokens(request: Request) -> int:
    """Return an upper bound on the tokens of a prompt, as a text has no more tokens than bytes.

    For a run of an agent, that is the limit of all its tokens.
    """
    if request.task is not None:
        return RunLimits().tokens
    size = size_of(request)
    if request.tools:
        # A catalogue may have a hundred thousand bytes, but it is prose: at least half of the
        # letters of its words begin no token.
        letters = sum(len(word) for word in _WORD.findall(request.skill))
        size -= letters // 2
    tool_results = sum(len(turn.results) for turn in request.turns)
    messages = 1 + len(request.tools) + len(request.turns) + tool_results
    return size + _TEMPLATE_TOKENS * messages


_WORD = re.compile(r" ?[a-zA-Z]+")


def size_of(request: Request) -> int:
    """Return the bytes of all texts of a request."""
    size = sum(map(_bytes, (request.frame, request.skill, request.user)))
    return size + sum(map(_json_bytes, (*request.tools, *request.turns)))


@lru_cache(maxsize=256)  # A catalogue is long, and shared by all requests of a run.
def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


@lru_cache(maxsize=64)  # Most requests have equal tools.
def _json_bytes(part: Tool | Turn) -> int:
    return len(json.dumps(asdict(part), ensure_ascii=False).encode("utf-8", "replace"))


def max_output_tokens(request: Request) -> int:
    """Return an upper bound on the tokens of an answer, or of all replies in a run of an agent."""
    if request.task is None:
        return request.max_tokens
    limits = RunLimits()
    replies = min(limits.requests, request.task.max_turns)
    return min(limits.tokens, replies * request.max_tokens)
