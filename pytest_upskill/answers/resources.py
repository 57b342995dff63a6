"""Hosts, and what a session provides to requests, trials and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_upskill.answers.batches import BatchNotes
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.recordings import Cache
from pytest_upskill.cases.catalogue import Catalogues
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.grading.grade import Decide
from pytest_upskill.models import Client, Completion, Model
from pytest_upskill.project.redaction import Redactor

if TYPE_CHECKING:
    from pytest_upskill.checks.compile import Compilers, Language
    from pytest_upskill.sandbox.run import Sandbox


@dataclass(frozen=True, slots=True)
class Host:
    """An endpoint, or the client of a plugin; its models share connections and a rate limit."""

    name: str
    url: str
    """Its address without credentials; "" if it has none."""
    open: Callable[[], Client]
    """Makes the client. It may import an SDK, which is slow: called once, off the loop."""
    records_answers: bool
    """Whether its answers are recorded; False for answers that do not come from a real model."""
    caches_prompts: bool = False
    """Whether it has a prompt cache, which makes a skill block cheaper from the second time on."""
    accepts_tools: bool = True
    """Whether requests may offer tools, as far as is known before the first request."""
    runs_agents: bool = False
    """Whether its client runs agents, with retries and within the budget."""
    may_have_batches: bool = False
    """Whether its format has batches; the server may lack them."""
    is_vendor_with_batches: bool = False
    """Whether it is the vendor's own, which has them."""
    from_plugin: bool = False
    """Whether a plugin's hook made its client."""
    fetch_served_models: Callable[[Iterable[str]], Mapping[str, str]] | None = None
    """Fetches which model it serves under each name; None for a host whose names identify one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Every completion that was paid for, also those that no run uses."""

    answers: list[Completion] = field(default_factory=list)
    judgements: list[Completion] = field(default_factory=list)

    @property
    def all(self) -> list[Completion]:
        """Answers and judgements."""
        return [*self.answers, *self.judgements]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What all requests of a session share."""

    cache: Cache
    languages: tuple[Language, ...]
    """The languages that plugins add to the built-in ones."""
    compilers: Callable[[], Compilers]
    """Returns the compilers and runners of code; slow, so only called for a case that needs it."""
    agent_sandbox: Callable[[], Sandbox]
    """Returns the sandbox for the tools of agents; also slow."""
    open_agent: Callable[[Client], Client]
    """Returns a client that runs the built-in agent, given that of its model."""
    budget: Budget
    activity: InFlight
    bill: Bill
    redactor: Redactor
    batches: BatchNotes
    concurrency: int
    """Requests in flight at one host."""
    timeout: float
    """Timeout of a request in seconds."""


class WorkError(Exception):
    """Work that cannot be done as requested; the message is one line with the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What a session provides: hosts, resources, settings and extensions by plugins."""

    resources: Resources
    hosts: Callable[[Iterable[Model]], Mapping[Model, Host]]
    """Returns the host of each model, and checks that requests to it can be sent."""
    max_tokens: int
    """Maximum output tokens of an answer."""
    extensions: Extensions
    decide: Callable[[Case], Decide]
    """Returns the function that decides the custom checks of a case."""
    catalogues: Callable[[], Catalogues]
    """Returns what agents see of the skills."""
