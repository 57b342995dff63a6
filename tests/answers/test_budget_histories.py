"""``--upskill-max-cost`` holds in random histories of faults, batches and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from pytest_upskill.answers import batches, retry
from pytest_upskill.answers.batches import PRICE, BatchClient, BatchNotes
from pytest_upskill.answers.budget import Budget, BudgetError
from pytest_upskill.answers.prices import OwnPrice, Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import HostClient, Pace, Retries
from pytest_upskill.models import Completion, Model, ProviderError, Request, parse_model
from pytest_upskill.models.request import BatchStatus

HISTORIES = 200
LIMIT = 0.0025
"""Dollars: not enough for all requests of a session, at their maximum."""
MODEL = parse_model("m=x@http://a.invalid/v1")
PRICES = Prices({"m": OwnPrice(input=1.0, output=2.0)})


def request(run: int) -> Request:
    return Request(model=MODEL, frame="", skill="", user="Why?", max_tokens=200, run=run)


@dataclass
class Vendor:
    """A vendor in trouble, which bills what it has done, whether or not anybody hears of it."""

    random: Random
    batches: dict[str, dict[str, Completion | ProviderError]] = field(default_factory=dict)
    billed: float = 0.0
    billed_of: dict[str, float] = field(default_factory=dict)

    def answer(self, share: float) -> Completion | ProviderError:
        kind = self.random.random()
        if kind < 0.1:
            return ProviderError("m: HTTP 400", status=400)
        if kind < 0.2:
            return ProviderError("m: the batch expired", billable=False)
        sent, tokens = self.random.randint(1, 68), self.random.randint(1, 200)
        self.billed += share * (sent + 2 * tokens) / 1e6
        if kind < 0.3:  # billed, but the reply is lost or without counts
            if kind < 0.25:
                return ProviderError("m: broken", status=200, retryable=True)
            return Completion(text="x", input_tokens=None, output_tokens=None)
        return Completion(text="x", input_tokens=sent, output_tokens=tokens)

    async def complete(self, _: Request) -> Completion:
        await asyncio.sleep(0)
        if self.random.random() < 0.2:
            raise ProviderError("m: HTTP 500", status=500, retryable=True)
        answer = self.answer(1.0)
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    async def submit(self, requests: Mapping[str, Request], _: Model) -> str:
        await asyncio.sleep(0)
        kind = self.random.random()
        if kind < 0.15:
            raise ProviderError("m: HTTP 503", status=503, retryable=True)
        name, before = f"batch_{len(self.batches)}", self.billed
        self.batches[name] = {each: self.answer(PRICE) for each in requests}
        self.billed_of[name] = self.billed - before
        if kind < 0.25:  # the vendor has it, and nobody knows its id
            raise ProviderError("no reply", retryable=True)
        await asyncio.sleep(0)
        return name

    async def status(self, batch: str, _: Model) -> BatchStatus:
        await asyncio.sleep(0)
        if self.random.random() < 0.2:
            raise ProviderError("m: HTTP 502", status=502, retryable=True)
        return BatchStatus(self.random.random() < 0.4, len(self.batches[batch]))

    async def results(
        self, batch: str, _: Iterable[str], __: Model
    ) -> Mapping[str, Completion | ProviderError]:
        await asyncio.sleep(0)
        return self.batches[batch]

    async def cancel(self, batch: str, _: Model) -> None:
        """Bill all of it nevertheless."""

    async def aclose(self) -> None:
        pass


async def session(vendor: Vendor, folder: Path, *, enabled: bool, seconds: float) -> None:
    """Send requests until all have an outcome, or until the session is interrupted."""
    notes = BatchNotes(folder, enabled=enabled)
    budget = Budget(LIMIT, PRICES, of_left_batches=notes.reserved)
    activity = InFlight()

    async def no_pause(_: float) -> None:
        await asyncio.sleep(0)

    retries = Retries(
        pace=Pace(4),
        host="a.invalid",
        activity=activity,
        sleep=no_pause,
    )
    client = BatchClient(
        direct=HostClient(vendor, retries, budget),
        api=vendor,
        url="http://a.invalid/v1",
        notes=notes,
        budget=budget,
        activity=activity,
        models=[MODEL],
    )
    runs = vendor.random.sample(range(12), 8)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(
                *(client.complete(request(run)) for run in runs), return_exceptions=True
            )
    except TimeoutError:
        pass
    finally:
        with suppress(BudgetError):
            await client.aclose()


@pytest.mark.parametrize("block", range(4))
def test_no_session_costs_more_than_its_limit(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_QUIET_S", "_FIRST_POLL_S", "_LONGEST_POLL_S"):
        monkeypatch.setattr(batches, name, 0.0005)
    monkeypatch.setattr(retry, "_pause", lambda _: 0.0)
    spent: list[float] = []
    for seed in range(block, HISTORIES, 4):
        random = Random(seed)
        vendor, folder = Vendor(random), tmp_path / str(seed)
        for _ in range(random.randint(1, 4)):
            # A batch whose id nobody knows counts as reserved.
            left = sum(
                vendor.billed_of.get(note.id, note.reserved)
                for note in BatchNotes(folder, enabled=True).read().values()
            )
            before = vendor.billed
            asyncio.run(
                session(
                    vendor,
                    folder,
                    enabled=random.random() < 0.8,
                    seconds=random.choice([0.002, 0.005, 0.02, 5.0]),
                )
            )
            spent.append(left + vendor.billed - before)

    assert max(spent) <= LIMIT + 1e-12
    assert sum(spent) / len(spent) > 0.2 * LIMIT
