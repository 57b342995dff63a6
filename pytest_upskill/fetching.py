"""Asking models on behalf of a pytest run: what must be there first, and the start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pytest

from pytest_upskill.answers import Host, Key, fetch_answers
from pytest_upskill.checks import Compile
from pytest_upskill.compile import Compilers
from pytest_upskill.fetch import Fetcher
from pytest_upskill.grade import Answer
from pytest_upskill.models import Model
from pytest_upskill.plan import Trial
from pytest_upskill.providers import Client, make_client, missing_sdk
from pytest_upskill.providers.keys import Endpoint, KeyProblem, endpoints, missing_key
from pytest_upskill.sandbox import SandboxError
from pytest_upskill.settings import SETTINGS, Settings

COMPILERS = pytest.StashKey[Compilers]()
"""The compilers of this process."""

_BUILT_IN = ("anthropic", "openai", "offline")


def find_hosts(config: pytest.Config, trials: Iterable[Trial]) -> dict[Model, Host]:
    """Find out who serves each model, before anything is sent.

    Raises:
        pytest.UsageError: Something would keep the trials from being run: a provider nobody
            serves, a missing SDK or key, a sandbox that does not work here. A line for each.
    """
    trials = list(trials)
    settings = config.stash[SETTINGS]
    hosts: dict[Model, Host] = {}
    for model in dict.fromkeys(trial.model for trial in trials):
        client = config.hook.pytest_upskill_make_client(model=model, config=config)
        if client is not None:
            hosts[model] = Host(model.resolved, _opener(client))
    own = [model for model in dict.fromkeys(t.model for t in trials) if model not in hosts]
    problems = [problem for model in own for problem in _problems(model)]
    if any(isinstance(check, Compile) for trial in trials for check in trial.case.checks):
        problems += _sandbox_problems(config.stash[COMPILERS])
    if problems:
        raise pytest.UsageError("\n".join(dict.fromkeys(problems)))
    return hosts | _own_hosts(own, settings)


def start_fetching(
    config: pytest.Config, trials: Mapping[str, Trial], hosts: Mapping[Model, Host]
) -> Fetcher[Key, Answer]:
    """Start fetching the answers of ``trials``, by node id, in the order of their items."""
    settings = config.stash[SETTINGS]
    fetcher = fetch_answers(
        trials,
        hosts=hosts,
        compilers=config.stash[COMPILERS],
        concurrency=settings.concurrency,
        # A run that may stop early must not pay for much that it will not look at.
        lookahead=2 * settings.concurrency if config.getoption("maxfail") else None,
    )
    config.add_cleanup(fetcher.stop)
    return fetcher


def _opener(client: Client) -> Callable[[], Client]:
    return lambda: client


def _problems(model: Model) -> list[str]:
    if model.provider not in _BUILT_IN:
        line = (
            f"--upskill-models: nobody serves {model.resolved!r}: write anthropic:, openai: or "
            "model@base_url, or add a plugin with the hook pytest_upskill_make_client"
        )
        return [line]
    return [line for line in (missing_sdk(model), missing_key(model, os.environ)) if line]


def _sandbox_problems(compilers: Compilers) -> list[str]:
    try:
        _ = compilers.level
    except SandboxError as error:
        return [f"--upskill-sandbox: {error}"]
    return []


def _own_hosts(models: Iterable[Model], settings: Settings) -> dict[Model, Host]:
    """Give every model its host; models of one endpoint share one."""
    try:
        found = endpoints(models, os.environ)
    except KeyProblem as error:
        raise pytest.UsageError(str(error)) from None
    shared: dict[Endpoint, Host] = {}
    for model, endpoint in found.items():
        opener = partial(
            make_client, endpoint, timeout=settings.timeout, concurrency=settings.concurrency
        )
        shared.setdefault(endpoint, Host(model.resolved, opener))
    return {model: shared[endpoint] for model, endpoint in found.items()}
