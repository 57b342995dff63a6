"""Agents in a session: the hosts of programs' models, why agents cannot run, and how many may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from pytest_upskill.answers.estimate import CostForecast
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.models import Client, Model
from pytest_upskill.models.keys import Endpoint, is_custom, url_variable
from pytest_upskill.models.served_models import served_models
from pytest_upskill.sandbox.limits import cores
from pytest_upskill.session.options.settings import Settings

_PROGRAMS_PER_CORE = 2
_PROGRAM_MEMORY = 400 << 20
"""Memory of one program in bytes, an upper bound of what was observed."""


def program_hosts(
    endpoints: Mapping[Model, Endpoint], settings: Settings, resources: Resources
) -> dict[Model, Host]:
    """Return the hosts of the models that a program uses as an agent.

    Args:
        endpoints: The endpoint of each model, with and without an agent.
        settings: Values of all options.
        resources: Budget, prices and other resources of this process.
    """
    models = [model for model in endpoints if model.runs_program]
    if not models:
        return {}
    open_client = partial(_open, settings, resources, asyncio.Semaphore(_program_slots()))
    return {
        model: Host(
            name=model.address,
            url=endpoints[model].url,
            url_variable=url_variable(model),
            open=partial(open_client, model, endpoints[model]),
            records_answers=True,
            runs_agents=True,
            fetch_served_models=(
                partial(served_models, endpoints[model]) if is_custom(model) else None
            ),
        )
        for model in models
    }


def agent_problems(
    forecast: CostForecast, hosts: Mapping[Model, Host], resources: Resources
) -> Iterator[str]:
    """Yield why agents cannot run, one line for each reason."""
    agents = [estimate.model for estimate in forecast.models if estimate.model.agent]
    if not agents or resources.cache.mode == "replay":
        return
    for model in agents:
        if not hosts[model].accepts_tools:
            yield (
                f"--upskill-models: {model.resolved}: {model.provider} accepts no tools, which "
                f"{model.agent} needs: choose another model"
            )
    from pytest_upskill.sandbox.run import SandboxError

    try:
        level = resources.agent_sandbox().level
    except SandboxError as error:
        yield f"--upskill-sandbox: {error}"
        return
    yield from _program_problems([model for model in agents if model.runs_program], level)


def _program_problems(models: list[Model], level: str) -> Iterator[str]:
    """Yield why the programs of models cannot run at a sandbox level."""
    if not models:
        return
    from pytest_upskill.agents.programs.registry import program_problem

    if level != "bwrap":
        yield (
            f"--upskill-models: {models[0].agent} runs in bubblewrap only, and {level} is in use: "
            "install bubblewrap (apt install bubblewrap), and allow it user namespaces (Ubuntu: "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0), or use a Linux container; "
            "a replay needs neither"
        )
    for model in models:
        if problem := program_problem(model):
            yield problem


def _open(
    settings: Settings,
    resources: Resources,
    slots: asyncio.Semaphore,
    model: Model,
    endpoint: Endpoint,
) -> Client:
    from pytest_upskill.agents.program_client import make_program_client

    return make_program_client(
        model,
        endpoint,
        timeout=settings.timeout,
        budget=resources.budget,
        activity=resources.activity,
        max_in_flight=settings.concurrency,
        slots=slots,
        sandbox=resources.agent_sandbox(),
    )


def installed_versions(models: Iterable[Model]) -> dict[str, str]:
    """Return the versions of the agents of models, by prefix, as far as they are installed."""
    agents = {model.agent for model in models if model.agent}
    if not agents:
        return {}
    from pytest_upskill.agents.loop import VERSION
    from pytest_upskill.agents.programs.cli import NoAgentError
    from pytest_upskill.agents.programs.registry import PROGRAMS

    versions = {"loop": VERSION}
    for agent in agents & PROGRAMS.keys():
        with suppress(NoAgentError):
            versions[agent] = PROGRAMS[agent].find().version
    return versions


def runs_ahead(models: Iterable[Model], settings: Settings) -> int:
    """Return how many runs may start before a test waits for them, if not all may be needed.

    With agents, whose runs are long and expensive, no more start than can run at once.
    """
    agents = [model for model in models if model.agent]
    if not agents:
        return 2 * settings.concurrency
    if any(model.runs_program for model in agents):
        return min(_program_slots(), settings.concurrency)
    return settings.concurrency


def _program_slots() -> int:
    """Return how many programs may run at once: two per core, if the memory is enough for them."""
    slots = _PROGRAMS_PER_CORE * cores()
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        available_kib = int(available.split()[1])
        slots = min(slots, (available_kib << 10) // _PROGRAM_MEMORY)
    return max(1, slots)
