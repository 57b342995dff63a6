"""What completions cost: prices by genai-prices, or of the user's own; and a limit on the sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from pytest_upskill.completion import Completion, Request
from pytest_upskill.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrice:
    """A price the user set, in dollars for a million tokens."""

    input: float
    output: float


class Prices:
    """Prices of the chosen models; None, never 0, where a price is not known.

    Args:
        own: Prices by label; they come before what genai-prices says.
    """

    def __init__(self, own: Mapping[str, OwnPrice]) -> None:
        self._own = own
        # 0.2 s and more to import, so only where something is to be priced.
        self._listed = find_spec("genai_prices") is not None

    def cost(self, model: Model, completion: Completion) -> float | None:
        """Price a completion in dollars, cached and tiered tokens at their own rate."""
        if completion.input_tokens is None or completion.output_tokens is None:
            return None
        return self._price(
            model,
            completion.input_tokens,
            completion.output_tokens,
            cache_read=completion.cache_read_tokens,
            cache_write=completion.cache_write_tokens,
        )

    def most(self, request: Request) -> float | None:
        """Bound the price of asking, in dollars: a token for two bytes sent, the whole answer."""
        sent = len(request.system.encode()) + len(request.user.encode())
        return self._price(request.model, (sent + 1) // 2, request.max_tokens)

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
            own = self._own[model.label]
            return (own.input * input_tokens + own.output * output_tokens) / 1e6
        # A server of one's own may serve a model of a vendor's name at any price.
        if model.base_url is not None or not self._listed:
            return None
        from genai_prices import Usage, calc_price

        usage = Usage(
            input_tokens=input_tokens,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            output_tokens=output_tokens,
        )
        try:
            return float(
                calc_price(usage, model_ref=model.name, provider_id=model.provider).total_price
            )
        except LookupError:
            return None


class Budget:
    """A sum of dollars that must not be passed; requests reserve what they may cost at most.

    Args:
        limit: Dollars; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.spent = 0.0
        self.refused = False
        """Whether a request was not sent for the limit's sake."""
        self._reserved = 0.0

    def reserve(self, most: float | None) -> bool:
        """Set ``most`` aside, unless spending all of it would pass the limit."""
        if self.limit is None or most is None:
            return True
        if self.spent + self._reserved + most > self.limit:
            self.refused = True
            return False
        self._reserved += most
        return True

    def settle(self, most: float | None, cost: float | None) -> None:
        """Give back what was set aside and count what it came to."""
        if self.limit is not None and most is not None:
            self._reserved -= most
        self.spent += cost or 0.0
