"""The resources that all trials of a session share: cache, budget, prices, compilers, sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.batches import BatchNotes
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.cache import Cache
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.resources import Bill, Resources
from pytest_upskill.models import Client
from pytest_upskill.models.keys import secrets
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.session.options import value_of
from pytest_upskill.session.plugin_hooks import languages_of
from pytest_upskill.session.settings import SETTINGS, Settings, read_settings

if TYPE_CHECKING:
    from pytest_upskill.checks.compile import Compilers, Language
    from pytest_upskill.sandbox.run import Sandbox

RESOURCES = pytest.StashKey[Resources]()
"""Cache, prices, budget and other resources of this process."""

_MAX_COST_WITH_AGENTS = 5.0
"""Dollars that a run with agents may cost if ``--upskill-max-cost`` sets no other limit."""


def set_up(config: pytest.Config) -> tuple[Settings, Resources]:
    """Read the settings, make the resources, and store both in the config's stash.

    Raises:
        pytest.UsageError: The value of an option is invalid, or a plugin's hook fails.
    """
    settings = config.stash[SETTINGS] = read_settings(config)
    is_default_folder = not value_of(config, "cache_dir")
    languages = languages_of(config)
    prices = Prices(settings.prices)
    limit = settings.max_cost
    if limit is None and _has_paid_agents(settings, prices):
        limit = _MAX_COST_WITH_AGENTS
    batches = BatchNotes(
        settings.project / STATE / "batches",
        enabled=settings.batch and not settings.early_stop and settings.cache_mode != "replay",
    )
    sandbox = cache(partial(_agent_sandbox, settings.sandbox))
    redactor = Redactor(secrets(settings.requested_models, os.environ))
    resources = config.stash[RESOURCES] = Resources(
        cache=Cache(settings.cache_dir, settings.cache_mode, ignored_by_git=is_default_folder),
        languages=languages,
        compilers=cache(partial(_compilers, settings.sandbox, languages)),
        agent_sandbox=sandbox,
        open_agent=partial(_open_agent, sandbox, settings.concurrency, redactor),
        prices=prices,
        budget=Budget(limit, prices, left=batches.reserved),
        batches=batches,
        activity=InFlight(),
        bill=Bill(),
        redactor=redactor,
    )
    return settings, resources


def _has_paid_agents(settings: Settings, prices: Prices) -> bool:
    """Return whether agents are used and the prices of all models are known."""
    uses_agents = any(model.agent for model in settings.models)
    return uses_agents and all(map(prices.has_price, settings.requested_models))


def _agent_sandbox(level: Level) -> Sandbox:
    from pytest_upskill.agents.loop import agent_sandbox

    return agent_sandbox(level)


def _open_agent(
    sandbox: Callable[[], Sandbox], concurrency: int, redactor: Redactor, client: Client
) -> Client:
    # Imported here: most runs have no agents.
    from pytest_upskill.agents.loop import LoopClient

    return LoopClient(client, sandbox, concurrency, redactor.redact)


def _compilers(level: Level, languages: Iterable[Language]) -> Compilers:
    # Imported here: most skills have nothing to compile.
    from pytest_upskill.checks.compile import Compilers

    return Compilers(level, languages)
