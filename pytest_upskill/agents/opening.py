"""Construction of the client of a model whose agent is a program."""

from __future__ import annotations

import asyncio

from pytest_upskill.agents.client import CliClient
from pytest_upskill.agents.programs.cli import NoAgentError
from pytest_upskill.agents.programs.registry import PROGRAMS
from pytest_upskill.agents.proxy.upstream import HostUpstream
from pytest_upskill.completion import ProviderError
from pytest_upskill.model import Model
from pytest_upskill.providers.keys import Endpoint, is_custom
from pytest_upskill.spending.budget import Budget
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.retry import retries_to


def open_program(
    model: Model,
    endpoint: Endpoint,
    *,
    timeout: float,
    budget: Budget,
    activity: InFlight,
    requests: int,
    slots: asyncio.Semaphore,
) -> CliClient:
    """Make the client that runs the program of a model's agent.

    Args:
        model: A model with an agent.
        endpoint: Its host and key.
        timeout: Seconds until a reply must begin.
        budget: What runs may cost.
        activity: The record of requests and waits.
        requests: Maximum number of requests in flight at the host.
        slots: The limit of programs at once.

    Raises:
        ProviderError: The program is not installed.
    """
    cli = PROGRAMS[model.agent]
    try:
        installed = cli.find()
    except NoAgentError as error:
        raise ProviderError(str(error), fatal=True, billable=False) from None
    custom = is_custom(model)
    upstream = HostUpstream(
        endpoint,
        cli.wire,
        timeout=timeout,
        retries=retries_to(
            endpoint.host, most=requests, custom=custom, timeout=timeout, activity=activity
        ),
    )
    return CliClient(cli, installed, upstream, budget=budget, slots=slots)
