"""What requests and runs of agents reserve, and what they take."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pytest_upskill.answers.budget import Budget, BudgetError
from pytest_upskill.answers.prices import OwnPrice, Prices
from pytest_upskill.models import Completion, Request
from tests.agent_programs import agent_request
from tests.answers.retrying import ANSWER, request

DOLLAR = Prices({"m": OwnPrice(input=0, output=1e6)})
"""A dollar for each output token."""

PRICES = Prices({"m": OwnPrice(input=1.0, output=1.0)})


def costing(dollars: int) -> Request:
    return replace(request(), max_tokens=dollars)


def test_a_request_that_would_not_fit_waits_for_others_to_settle() -> None:
    async def spend() -> tuple[bool, bool]:
        budget = Budget(10, DOLLAR)
        first = await budget.reserve(costing(6))
        waiting = asyncio.create_task(budget.reserve(costing(6)))
        await asyncio.sleep(0)
        early = waiting.done()
        await budget.settle(first, replace(ANSWER, cost_usd=1.0), True)
        await budget.release(first)
        return early, (await waiting).left == 6

    assert asyncio.run(spend()) == (False, True)


def test_an_answer_of_unknown_cost_counts_as_the_most() -> None:
    async def spend() -> tuple[float | None, float]:
        budget = Budget(10, DOLLAR)
        reserved = await budget.reserve(costing(6))
        await budget.settle(reserved, None, True)
        await budget.release(reserved)
        return budget.left, budget.assumed

    assert asyncio.run(spend()) == (4, 6)


def test_once_a_request_was_refused_all_later_ones_are() -> None:
    async def spend() -> None:
        budget = Budget(10, DOLLAR)
        with pytest.raises(BudgetError, match="not sent, as it could exceed the limit"):
            await budget.reserve(costing(20))
        assert budget.why_stopped.endswith(
            " could exceed $10: raise the limit: what is recorded is not paid again"
        )
        with pytest.raises(BudgetError):
            await budget.reserve(costing(1))

    asyncio.run(spend())


async def spend_most_of_a_run(limit: float) -> float | None:
    """Send 280 KB when 350,000 of a run's 500,000 tokens are spent; return what is left."""
    budget = Budget(limit, PRICES)
    reserved = await budget.reserve(agent_request())
    settle = await budget.reserve_next(reserved, 350_000)
    await settle(Completion(text="", input_tokens=350_000, output_tokens=1), True)
    settle = await budget.reserve_next(reserved, 280_000)
    await settle(Completion(text="", input_tokens=70_000, output_tokens=1), True)
    await budget.release(reserved)
    return budget.left


def test_a_long_run_goes_on_as_long_as_the_session_has_money_left() -> None:
    assert asyncio.run(spend_most_of_a_run(100)) == pytest.approx(100 - 0.42, abs=1e-5)


def test_a_long_run_ends_where_the_session_has_none() -> None:
    with pytest.raises(BudgetError, match="not sent"):
        asyncio.run(spend_most_of_a_run(0.6))
