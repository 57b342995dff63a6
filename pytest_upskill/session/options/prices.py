"""The prices that the user sets in the ini file."""

from __future__ import annotations

import re

import pytest

from pytest_upskill.spending.prices import OwnPrice

_RATE = r"\d*\.?\d+"
_PRICE = re.compile(
    rf"(?P<label>[^\s=]+)\s*=\s*(?P<in>{_RATE})\s*/\s*(?P<out>{_RATE})"
    rf"(\s+cached\s+(?P<cached>{_RATE}))?"
)


def own_prices(config: pytest.Config) -> dict[str, OwnPrice]:
    """Return the user's prices by label of the model.

    Raises:
        pytest.UsageError: A line is no price.
    """
    prices = {}
    for line in config.getini("upskill_prices"):
        match = _PRICE.fullmatch(line)
        if match is None:
            raise pytest.UsageError(
                f"upskill_prices: bad line {line!r}: write 'label = IN/OUT' or "
                "'label = IN/OUT cached RATE', dollars per million tokens, such as 'haiku = "
                "0.10/0.50 cached 0.01'"
            )
        cached = float(match["cached"]) if match["cached"] else None
        price = OwnPrice(input=float(match["in"]), output=float(match["out"]), cached=cached)
        if cached is not None and cached > price.input:
            raise pytest.UsageError(
                f"upskill_prices: bad line {line!r}: cached tokens cannot cost more than others: "
                f"write a lower price after 'cached'"
            )
        prices[match["label"]] = price
    return prices
