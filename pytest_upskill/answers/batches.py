"""Requests in batches, at half the price: submitted together, and collected when they are done.

A batch is noted in a file of its own before it is submitted, and the file is deleted once it is
collected. So a batch that was left, by Ctrl-C or a crash, is known to the next session: its
reservation counts against the budget from the start, and it is collected, or canceled if the
session sends no batches.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from pytest_upskill.answers.budget import Budget, Reservation
from pytest_upskill.answers.progress import InFlight, duration
from pytest_upskill.answers.recordings import address, identity
from pytest_upskill.answers.retry import repeating
from pytest_upskill.models import Client, Completion, Model, ProviderError, Request
from pytest_upskill.models.request import BatchApi, BatchStatus
from pytest_upskill.project.files import ignore_in_git, read_state, write_file

PRICE = 0.5
"""Share of the price that vendors charge for a request in a batch."""

_QUIET_S = 1.0
"""Seconds without a further request after which a batch is submitted."""
_MOST_REQUESTS = 500
"""Number of requests in a batch, whose results are read at once."""
_FIRST_POLL_S, _LONGEST_POLL_S = 1.0, 30.0
_SUBMISSIONS = 6
"""Maximum number of attempts to submit a batch."""
_FORGOTTEN_S = 3 * 86_400.0
"""Age of a note without a batch's id, or of one that no host knows, after which it is deleted."""


def may_have_batches(model: Model) -> bool:
    """Return whether the host of a model may have batches; a server of one's own may lack them."""
    return model.provider in {"anthropic", "openai"} and not model.runs_program


def is_batchable(request: Request) -> bool:
    """Return whether nothing depends on the answer while others are sent."""
    return not request.tools and request.task is None


class LeftBatch(BaseModel, frozen=True, defer_build=True):
    """The note about a batch."""

    url: str
    model: str
    """Provider and name of the model, as in recordings."""
    id: Annotated[str, Field(pattern=r"^[\w-]*$")] = ""
    """The host's name of the batch; "" as long as it may not have been submitted."""
    began: float
    """Seconds since the epoch."""
    reserved: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Dollars that it may cost; 0 if the price is unknown."""
    items: Annotated[Mapping[str, str], Field(min_length=1)]
    """The identity of each request by its id in the batch."""


class BatchNotes:
    """The notes of a project's batches, one file each.

    Args:
        folder: Their folder.
        enabled: Whether the session sends requests in batches.
    """

    def __init__(self, folder: Path, *, enabled: bool) -> None:
        self.folder = folder
        self.enabled = enabled
        self.lacking: list[str] = []
        """Addresses of the hosts that turned out to have no batches."""

    def read(self) -> dict[Path, LeftBatch]:
        """Return the notes of batches that were left, by file; unreadable ones are skipped."""
        notes = {}
        for file in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValidationError):
                note = LeftBatch.model_validate_json(read_state(file))
                if note.id or time.time() - note.began < _FORGOTTEN_S:
                    notes[file] = note
                else:
                    self.delete(file)
        return notes

    def write(self, file: Path, note: LeftBatch) -> None:
        """Write a note.

        Raises:
            OSError: It cannot be written.
        """
        ignore_in_git(self.folder)
        write_file(file, f"{note.model_dump_json(indent=1)}\n".encode())

    def delete(self, file: Path) -> None:
        """Delete the note of a batch that is collected."""
        file.unlink(missing_ok=True)

    @property
    def reserved(self) -> float:
        """Dollars that the batches that were left may still cost."""
        return sum(note.reserved for note in self.read().values())

    def lines(self) -> Iterator[str]:
        """Yield a line for each batch that is left, and for each host that has none."""
        for url in self.lacking:
            yield f"upskill: {url} has no batches: its requests were sent at the full price"
        for file, note in self.read().items():
            batch = f"upskill: a batch of {len(note.items)} requests to {note.model}"
            cure = "the same command collects it, one without --upskill-batch cancels it"
            yield (
                f"{batch} is left ({note.id}): {cure}"
                if note.id
                else f"{batch} may have been submitted, though {note.url} did not say so: see "
                f"there, cancel it, and delete {file}; until then, or for three days, its cost "
                "counts in --upskill-max-cost"
            )


@dataclass(frozen=True, eq=False, slots=True)
class _Item:
    request: Request
    reservation: Reservation
    outcome: asyncio.Future[Completion]


class _NoBatches(Exception):  # noqa: N818  describes a host, not a failure
    """A host that has no batches."""


@dataclass(eq=False, kw_only=True)
class BatchClient:
    """A client that sends requests in batches where it can, and others one by one."""

    direct: Client
    """The client for single requests."""
    api: BatchApi
    """The client for batches."""
    url: str
    """The address of the host."""
    notes: BatchNotes
    budget: Budget
    activity: InFlight
    """The record of what is in progress."""
    models: Iterable[Model]
    """The models of the host, which batches of earlier sessions were for."""

    def __post_init__(self) -> None:
        self._queue: defaultdict[Model, list[_Item]] = defaultdict(list)
        self._added = asyncio.Event()
        self._left: dict[str, asyncio.Future[Completion | None]] = {}
        """The answer to each request of a batch that was left; None if it has none."""
        by_address = {address(model): model for model in self.models}
        self._tasks = {
            asyncio.create_task(self._collect_left(file, note, by_address[note.model]))
            for file, note in self.notes.read().items()
            if note.url == self.url and note.model in by_address and note.id
        }
        self._tasks.add(asyncio.create_task(self._submit_when_quiet()))

    async def complete(self, request: Request) -> Completion:
        """Send a request in a batch, and return the completion with its cost.

        Raises:
            ProviderError: There is no usable reply.
            BudgetError: It could exceed the budget.
        """
        if not is_batchable(request):
            return await self.direct.complete(request)
        if left := self._left.pop(identity(request, self.url), None):
            completion = await left
            if completion is not None:
                return completion
        if self.notes.enabled and self.url not in self.notes.lacking:
            reservation = await self.budget.reserve(request, share=PRICE)
            outcome: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
            self._queue[request.model].append(_Item(request, reservation, outcome))
            self._added.set()
            with suppress(_NoBatches):
                return await outcome
        return await self.direct.complete(request)

    async def aclose(self) -> None:
        """Leave the batches in progress, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.direct.aclose()

    async def _submit_when_quiet(self) -> None:
        while True:
            await self._added.wait()
            while self._added.is_set():
                self._added.clear()
                await asyncio.sleep(_QUIET_S)
            for items in self._queue.values():
                while items:
                    batch, items[:] = items[:_MOST_REQUESTS], items[_MOST_REQUESTS:]
                    task = asyncio.create_task(self._run(batch))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            self._queue.clear()

    async def _run(self, items: list[_Item]) -> None:
        """Submit a batch, and give each of its requests its outcome."""
        requests = {
            f"{identity(item.request, self.url)[:48]}-{number}": item.request
            for number, item in enumerate(items)
        }
        file = self.notes.folder / f"{uuid4().hex[:16]}.json"
        outcomes: Mapping[str, Completion | Exception]
        model, is_collected = items[0].request.model, False
        try:
            note = await self._submit(file, requests, model)
            outcomes = await self._results(note, model)
            is_collected = True
        except Exception as error:  # noqa: BLE001  those who wait would wait for ever
            outcomes = dict.fromkeys(requests, error)
        for name, item in zip(requests, items, strict=True):
            why = f"{model.label}: the batch has no result for this request: run again"
            await self._settle(item, outcomes.get(name) or ProviderError(why, billable=False))
        if is_collected:
            await self._forget(file)

    async def _forget(self, file: Path) -> None:
        """Delete the note of a batch, once its answers have been recorded."""
        try:
            await asyncio.sleep(_QUIET_S)
        finally:
            self.notes.delete(file)

    async def _submit(self, file: Path, requests: Mapping[str, Request], model: Model) -> LeftBatch:
        """Submit a batch, and return the note about it.

        Raises:
            ProviderError: It was not submitted, or it is unknown whether it was.
            _NoBatches: The host has none.
        """
        # Also without a limit, as the next session may have one.
        costs = (self.budget.prices.max_cost(each) or 0.0 for each in requests.values())
        note = LeftBatch(
            url=self.url,
            model=address(model),
            began=time.time(),
            reserved=PRICE * sum(costs),
            items={name: identity(each, self.url) for name, each in requests.items()},
        )
        # Imported here: most sessions have no batches.
        from tenacity import stop_after_attempt

        self.notes.write(file, note)
        try:
            # Only what cannot have been submitted is submitted again.
            submission = repeating(
                stop=stop_after_attempt(_SUBMISSIONS),
                may_help=lambda error: error.retryable and not error.billable,
            )
            batch: str = await submission(self.api.submit, requests, model)
        except ProviderError as error:
            if not error.billable:
                self.notes.delete(file)
            if error.status not in {404, 405, 501}:
                raise
            if self.url not in self.notes.lacking:
                self.notes.lacking.append(self.url)
            raise _NoBatches from None
        note = note.model_copy(update={"id": batch})
        self.notes.write(file, note)
        return note

    async def _results(
        self, note: LeftBatch, model: Model
    ) -> Mapping[str, Completion | ProviderError]:
        """Wait until a batch has ended, and return what became of its requests.

        Raises:
            ProviderError: The host does not say.
        """
        pause = _FIRST_POLL_S
        try:
            while True:
                status: BatchStatus = await repeating()(self.api.status, note.id, model)
                if status.ended:
                    return await repeating()(self.api.results, note.id, note.items, model)
                progress = f"{status.done}/{len(note.items)}"
                since = duration(time.time() - note.began)
                self.activity.batches[note.id] = f"batch {note.id}: {progress} after {since}"
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_POLL_S)
        finally:
            self.activity.batches.pop(note.id, None)

    async def _settle(self, item: _Item, outcome: Completion | Exception) -> None:
        """Count the cost of a request, and pass on its outcome."""
        completion, billable = None, isinstance(outcome, ProviderError) and outcome.billable
        if isinstance(outcome, Completion):
            completion, billable = self._at_half_price(item.request.model, outcome), True
        await self.budget.settle(item.reservation, completion, billable)
        await self.budget.release(item.reservation)
        if item.outcome.done():
            return
        if isinstance(outcome, Exception):
            item.outcome.set_exception(outcome)
        elif completion is not None:
            item.outcome.set_result(completion)

    async def _collect_left(self, file: Path, note: LeftBatch, model: Model) -> None:
        """Collect a batch of an earlier session, once it has ended, or cancel it."""
        outcomes = {name: asyncio.get_running_loop().create_future() for name in note.items}
        self._left |= {note.items[name]: outcome for name, outcome in outcomes.items()}
        results: Mapping[str, Completion | ProviderError] | None = None
        try:
            with suppress(ProviderError):
                if not self.notes.enabled and not (await self.api.status(note.id, model)).ended:
                    await self.api.cancel(note.id, model)
                results = await self._results(note, model)
        finally:
            found = {
                name: self._at_half_price(model, result)
                for name, result in (results or {}).items()
                if isinstance(result, Completion)
            }
            for name, outcome in outcomes.items():
                if not outcome.done():
                    outcome.set_result(found.get(name))
        if results is not None:
            share, cost = note.reserved / len(note.items), 0.0
            for name, result in results.items():
                known = found[name].cost_usd if name in found else None
                if known is not None:
                    cost += known
                elif not isinstance(result, ProviderError) or result.billable:
                    cost += share
            await self.budget.settle_left(note.reserved, cost)
        # A batch that its host does not know any more cannot be billed any more.
        if results is not None or time.time() - note.began > _FORGOTTEN_S:
            await self._forget(file)

    def _at_half_price(self, model: Model, completion: Completion) -> Completion:
        cost = self.budget.prices.cost(model, completion)
        return replace(completion, cost_usd=None if cost is None else PRICE * cost)
