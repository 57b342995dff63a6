"""What a run of an agent may cost: its reservation, and what it takes beyond."""

from __future__ import annotations

import asyncio

import pytest

from pytest_upskill.completion import Completion
from pytest_upskill.spending.budget import Budget, BudgetError
from pytest_upskill.spending.prices import OwnPrice, Prices
from pytest_upskill.spending.run_budget import RunBudget
from tests.agent_programs import asked

PRICES = Prices({"m": OwnPrice(input=1.0, output=1.0)})


async def spend_most_of_a_run(limit: float) -> float | None:
    """Send 280 KB when 350,000 of a run's 500,000 tokens are spent; return what is left."""
    budget = Budget(limit)
    reservation = await RunBudget(budget, PRICES).reserve(asked())
    settle = await reservation.request(350_000)
    await settle(Completion(text="", input_tokens=350_000, output_tokens=1), True)
    settle = await reservation.request(280_000)
    await settle(Completion(text="", input_tokens=70_000, output_tokens=1), True)
    await reservation.release()
    return budget.left


def test_a_long_run_goes_on_as_long_as_the_session_has_money_left() -> None:
    assert asyncio.run(spend_most_of_a_run(100)) == pytest.approx(100 - 0.42, abs=1e-5)


def test_a_long_run_ends_where_the_session_has_none() -> None:
    with pytest.raises(BudgetError, match=r"\$0\.6"):
        asyncio.run(spend_most_of_a_run(0.6))
