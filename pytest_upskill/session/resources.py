"""The resources that all trials of a session share: cache, budget, prices, compilers, sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.batches import BatchNotes
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.resources import Bill, Resources
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.blocks import RUNNABLE
from pytest_upskill.checks.extensions import Custom, Extensions, describe_exception
from pytest_upskill.checks.text import MAX_MESSAGE, cut
from pytest_upskill.models import Client
from pytest_upskill.models.completion import clean
from pytest_upskill.models.keys import secrets
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.session.options import value_of
from pytest_upskill.session.settings import SETTINGS, Settings, read_settings

if TYPE_CHECKING:
    from pluggy import HookRelay

    from pytest_upskill.checks.compile import Compilers, Language
    from pytest_upskill.sandbox.run import Sandbox

T = TypeVar("T")

RESOURCES = pytest.StashKey[Resources]()
"""Cache, prices, budget and other resources of this process."""

_MAX_COST_WITH_AGENTS = 5.0
"""Dollars that a run with agents may cost if ``--upskill-max-cost`` sets no other limit.

There is none where the price of a model is unknown.
"""


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
    has_agents = any(model.agent for model in settings.models)
    if limit is None and has_agents and all(map(prices.has_price, settings.requested_models)):
        limit = _MAX_COST_WITH_AGENTS
    batches = BatchNotes(
        settings.project / STATE / "batches",
        enabled=settings.batch and settings.cache_mode != "replay",
    )
    redactor = Redactor(secrets(settings.requested_models, os.environ))

    # Imported inside: most skills have nothing to compile, and most runs no agents.
    @cache
    def compilers() -> Compilers:
        from pytest_upskill.checks.compile import Compilers

        return Compilers(settings.sandbox, languages)

    @cache
    def sandbox() -> Sandbox:
        from pytest_upskill.agents.loop import agent_sandbox

        return agent_sandbox(settings.sandbox)

    def open_agent(client: Client) -> Client:
        from pytest_upskill.agents.loop import LoopClient

        return LoopClient(client, sandbox(), settings.concurrency, redactor.redact)

    resources = config.stash[RESOURCES] = Resources(
        cache=Cache(settings.cache_dir, settings.cache_mode, ignored_by_git=is_default_folder),
        languages=languages,
        compilers=compilers,
        agent_sandbox=sandbox,
        open_agent=open_agent,
        budget=Budget(limit, prices, of_left_batches=batches.reserved),
        batches=batches,
        activity=InFlight(),
        bill=Bill(),
        redactor=redactor,
        concurrency=settings.concurrency,
        timeout=settings.timeout,
    )
    return settings, resources


def called(hook: Callable[..., T], name: str, **arguments: object) -> T:
    """Return what a plugin's hook returns.

    Raises:
        pytest.UsageError: It raises an error.
    """
    try:
        return hook(**arguments)
    except (pytest.UsageError, pytest.exit.Exception):
        raise
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001  a plugin's
        what = describe_exception(error)
        raise pytest.UsageError(f"{name} raised {what}: fix the plugin") from None


def languages_of(config: pytest.Config) -> tuple[Language, ...]:
    """Return the languages of plugins and of the rootdir's ``conftest.py``.

    Raises:
        pytest.UsageError: A plugin's hook raises an error or does not return a list.
    """
    hook = "the hook pytest_upskill_languages"
    lists: list[Sequence[Language]] = called(config.hook.pytest_upskill_languages, hook)
    for languages in lists:
        if not isinstance(languages, (list, tuple)):
            returned = type(languages).__name__
            raise pytest.UsageError(f"{hook} returned {returned}: return a list of languages")
    return tuple(language for languages in lists for language in languages)


def extensions_of(hook: HookRelay, languages: Iterable[Language]) -> Extensions:
    """Return the languages and checks that plugins add to a case file.

    Args:
        hook: Hooks that apply to the case file.
        languages: Languages of plugins.
    """

    def claims(name: str, value: object) -> bool:
        return bool(hook.pytest_upskill_claim_check(name=name, value=value))

    runnable = set(RUNNABLE)
    spellings = {}
    for language in languages:
        # A plugin's language replaces the built-in one of its name.
        runnable.discard(language.name)
        if language.runner is not None:
            runnable.add(language.name)
        spellings.update(dict.fromkeys(language.spellings, language.name))
    return Extensions(languages=spellings, runnable=frozenset(runnable), claims=claims)


def decider(hook: HookRelay, case: Case) -> Callable[[Custom, str], CheckResult]:
    """Return a function that decides a case's custom checks through the plugins' hook.

    The function raises `CheckError` if the hook fails or returns no bool and no `CheckResult`.

    Args:
        hook: Hooks that apply to the case file.
        case: The case, which the hook receives.
    """

    def decide(check: Custom, text: str) -> CheckResult:
        try:
            result = hook.pytest_upskill_check(
                name=check.name, value=check.value, answer=text, case=case
            )
        except CheckError as error:
            raise CheckError(clean(str(error))) from error
        except (Exception, pytest.fail.Exception) as error:  # a plugin's
            what = describe_exception(error)
            raise CheckError(f"{check.name}: pytest_upskill_check raised {what}") from error
        if isinstance(result, bool):
            outcome = "holds" if result else "does not hold"
            message = cut(f"{check.name} {check.value!r}: {outcome}", MAX_MESSAGE)
            return CheckResult(name=check.name, passed=result, message=message)
        if isinstance(result, CheckResult):
            message = cut(str(result.message), MAX_MESSAGE)
            return replace(result, message=message, detail=clean(str(result.detail)))
        raise CheckError(
            f"{check.name}: pytest_upskill_check returned {type(result).__name__}: "
            "return a bool or a CheckResult"
        )

    return decide
