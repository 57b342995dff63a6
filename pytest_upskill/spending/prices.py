"""What completions cost, by genai-prices or by prices of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

from pytest_upskill.completion import Completion, Request
from pytest_upskill.model import Model

_TEMPLATE_TOKENS = 64
"""What an API may wrap around a prompt: roles, separators."""

_STEP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrice:
    """A price the user set, in dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input that the server had kept, at most that of other input; None where it is the same."""

    def of(self, input_tokens: int, output_tokens: int, *, cache_read: int) -> float:
        """Price tokens in dollars."""
        cached = self.input if self.cached is None else self.cached
        new = self.input * (input_tokens - cache_read)
        return (new + cached * cache_read + self.output * output_tokens) / 1e6


class Prices:
    """Prices of the chosen models; None, never 0, where a price is not known.

    Args:
        own: Prices by label; they come before what genai-prices says.
    """

    def __init__(self, own: Mapping[str, OwnPrice]) -> None:
        self._own = own
        # Slow to import, so only where something is to be priced.
        self._listed = find_spec("genai_prices") is not None

    def cost(self, model: Model, completion: Completion) -> float | None:
        """Price a completion in dollars, cached and tiered tokens at their own rate."""
        if completion.input_tokens is None or completion.output_tokens is None:
            return None
        if completion.cache_read_tokens > completion.input_tokens:
            return None
        return self._price(
            model,
            completion.input_tokens,
            completion.output_tokens,
            cache_read=completion.cache_read_tokens,
            cache_write=completion.cache_write_tokens,
        )

    def most(self, request: Request) -> float | None:
        """Bound the price of asking once, in dollars."""
        # Rounded up, so that requests of about a length are priced once.
        sent = -(-most_input_tokens(request) // _STEP) * _STEP
        # Writing a prompt to the vendor's cache is what costs more than sending it.
        return self._price(request.model, sent, request.max_tokens, cache_write=sent)

    def unknown(self, model: Model) -> str:
        """Say that a model has no price, and how to give it one."""
        listed = "" if self._listed or model.base_url else "pip install genai-prices, or "
        return (
            f"no price is known for {model.resolved!r}: {listed}set upskill_prices = "
            f"'{model.label} = IN/OUT' in dollars for a million tokens"
        )

    def _price(
        self,
        model: Model,
        input_tokens: int,
        output_tokens: int,
        *,
        cache_read: int = 0,
        cache_write: int = 0,
    ) -> float | None:
        if model.provider == "offline":
            return 0.0
        if model.label in self._own:
            return self._own[model.label].of(input_tokens, output_tokens, cache_read=cache_read)
        # A server of one's own may serve a model of a vendor's name at any price. The list tells
        # vendors by their URLs, all https; what is not need not wait for its import.
        own_server = model.base_url is not None and not model.base_url.startswith("https:")
        if own_server or not self._listed:
            return None
        return _list_price(model, input_tokens, output_tokens, cache_read, cache_write)


@lru_cache(maxsize=4096)  # Each takes 0.2 ms, and answers of a model are often of one length.
def _list_price(
    model: Model, input_tokens: int, output_tokens: int, cache_read: int, cache_write: int
) -> float | None:
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        output_tokens=output_tokens,
    )
    try:
        price = (
            calc_price(usage, model.name, provider_id=model.provider)
            if model.base_url is None
            else calc_price(usage, model.name, provider_api_url=model.base_url)
        )
    except (LookupError, ValueError):  # no such model; counts that contradict each other
        return None
    return float(price.total_price)


def most_input_tokens(request: Request) -> int:
    """Bound the tokens of a prompt: no tokenizer makes more of a text than it has bytes."""
    sent = request.system + request.user
    return len(sent.encode("utf-8", "replace")) + _TEMPLATE_TOKENS
