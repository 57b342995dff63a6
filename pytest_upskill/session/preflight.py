"""Checks that must pass before the first request, and the start of fetching."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

import pytest

from pytest_upskill.checks.extensions import raised
from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.completions.estimate import Estimate, forecast
from pytest_upskill.completions.resources import Host, Resources
from pytest_upskill.completions.service import Policy, Service
from pytest_upskill.grading.grade import sandboxed_of, statements_of
from pytest_upskill.model import Model
from pytest_upskill.model.hosts import BY_PREFIX
from pytest_upskill.providers import make_client, missing_sdk
from pytest_upskill.providers.error_hints import refused_parameter
from pytest_upskill.providers.keys import (
    Endpoint,
    KeyProblem,
    endpoints,
    is_custom,
    missing_key,
)
from pytest_upskill.providers.plugin_client import PluginClient
from pytest_upskill.providers.served import served_models
from pytest_upskill.sanitize.redaction import HIDDEN, Redactor, without_userinfo
from pytest_upskill.session.agents import agent_problems, program_hosts
from pytest_upskill.session.settings import SETTINGS, Settings
from pytest_upskill.spending.prices import Prices
from pytest_upskill.stats import CaseCounts, early_verdict
from pytest_upskill.trials.trial import Trial

RESOURCES = pytest.StashKey[Resources]()
"""Cache, prices, budget and other resources of this process."""

_REPLAY = re.compile(r"(--upskill-cache[= ])replay\b")
_NAMES_OF_MODELS = ("anthropic", "openai", "offline")
"""Providers of which the name alone tells the model, whichever host serves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Trials whose answers can be fetched, by node id, with their hosts and the cost forecast."""

    trials: Mapping[str, Trial]
    hosts: Mapping[Model, Host]
    forecast: Estimate


def runs_tests(config: pytest.Config) -> bool:
    """Return whether tests run, and so need answers: not with --collect-only or --setup-only."""
    return not (config.option.collectonly or config.getoption("setuponly", False))


def prepare(config: pytest.Config, trials: Mapping[str, Trial]) -> Prepared:
    """Check, before any request is sent, that every trial can be answered.

    Args:
        config: Config of this process.
        trials: Trials that need answers, by node id.

    Raises:
        pytest.UsageError: A provider is unknown, an SDK or a key is missing, a price is missing
            under a cost limit, or the sandbox does not work. The message has a line for each.
    """
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    judge = settings.judge if any(statements_of(t.case) for t in trials.values()) else None
    asked = dict.fromkeys(trial.model for trial in trials.values())
    served = hosts(config, asked if judge is None else asked | {judge: None})

    def recorded(request: Request) -> bool:
        host = served[request.model]
        return host.recorded and resources.cache.holds(request, host.url)

    def load(request: Request) -> Completion | None:
        host = served[request.model]
        return resources.cache.load(request, host.url) if host.recorded else None

    ahead = forecast(
        trials.values(), recorded=recorded, load=load, prices=resources.prices, judge=judge
    )
    if not settings.dry_run:
        problems = [
            *_problems(ahead, served, settings, resources.prices),
            *_sandbox_problems(trials.values(), resources),
            *agent_problems(ahead, served, resources),
        ]
        if problems:
            raise pytest.UsageError("\n".join(dict.fromkeys(problems)))
    return Prepared(trials=trials, hosts=served, forecast=ahead)


def start_service(config: pytest.Config, prepared: Prepared) -> Service:
    """Start to run the trials, in the order of the items."""
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    if resources.cache.mode in {"auto", "refresh"}:
        resources.cache.served.update(_served(prepared.hosts))
    stops = config.getoption("maxfail") or config.getoption("stepwise", False)
    early = bool(stops) and not settings.early_stop
    policy = Policy(
        concurrency=settings.concurrency,
        # A session that may stop early must not pay for many answers that it will not use.
        lookahead=2 * settings.concurrency if early else None,
        judge=settings.judge,
        record_command=resources.redactor.redact(_recording(config.invocation_params.args)),
        clear=_is_clear if settings.early_stop else None,
    )
    return Service(prepared.trials, prepared.hosts, resources, policy)


def _served(found: Mapping[Model, Host]) -> dict[tuple[str, str], str]:
    """Request from all custom hosts at once what they serve, by URL and model name."""
    names: dict[Host, list[str]] = {}
    for model, host in found.items():
        if host.served is not None:
            names.setdefault(host, []).append(model.name)
    if not names:
        return {}
    with ThreadPoolExecutor(len(names), thread_name_prefix="upskill-served") as threads:
        futures = {host: threads.submit(host.served, names[host]) for host in names if host.served}
    return {
        (host.url, name): text
        for host, future in futures.items()
        for name, text in future.result().items()
    }


def stop_service(config: pytest.Config, service: Service) -> None:
    """Stop the service; errors from closing clients are printed at the end of the session."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    try:
        service.stop()
    except* Exception as unclosed:  # noqa: BLE001  an SDK's or a plugin's
        for error in unclosed.exceptions:
            if reporter is not None:
                config.add_cleanup(partial(reporter.line, f"upskill: {error}", yellow=True))


def _is_clear(cases: Sequence[CaseCounts], done: int, planned: int) -> bool:
    """Return whether the verdict needs no more rounds."""
    return early_verdict(cases, done, planned) is not None


def hosts(config: pytest.Config, models: Iterable[Model]) -> dict[Model, Host]:
    """Return the host of each model: a plugin's client, or an endpoint that models may share.

    Raises:
        pytest.UsageError: The key of an endpoint is ambiguous, or a plugin's hook fails.
    """
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    found: dict[Model, Host] = {}
    own: list[Model] = []
    for model in models:
        client = _client(model, config)
        if client is None:
            own.append(model)
        elif replace(model.parameters, max_tokens=None) and not _takes_parameters(client):
            raise pytest.UsageError(
                f"--upskill-param: the client of {model.address} sends no parameters: set "
                "accepts_parameters = True in it once its complete() sends "
                "request.model.parameters"
            )
        else:
            found[model] = Host(
                name=model.address,
                url="",
                open=_plugin_opener(client, model, settings.timeout, resources.redactor),
                # Not recorded under a vendor's model name: it could be taken for the vendor's.
                recorded=model.provider not in _NAMES_OF_MODELS,
                accepts_tools=getattr(client, "accepts_tools", False) is True,
                given=True,
            )
    return found | _own_hosts(own, settings, resources)


def _takes_parameters(client: Client) -> bool:
    return getattr(client, "accepts_parameters", False) is True


def _client(model: Model, config: pytest.Config) -> Client | None:
    """Return the client that a plugin makes for a model, None if no plugin serves it.

    Raises:
        pytest.UsageError: The hook raises an error, or what it returns is not a client.
    """
    hook = f"{model.address}: the hook pytest_upskill_make_client"
    try:
        client: Client | None = config.hook.pytest_upskill_make_client(model=model, config=config)
    except (pytest.UsageError, pytest.exit.Exception):
        raise
    except Exception as error:  # noqa: BLE001  a plugin's
        raise pytest.UsageError(f"{hook} raised {raised(error)}: fix the plugin") from None
    lacking = [name for name in ("complete", "aclose") if not hasattr(client, name)]
    if client is not None and lacking:
        raise pytest.UsageError(
            f"{hook} returned {type(client).__name__}, which has no {' and no '.join(lacking)}: "
            "return a client or None"
        )
    return client


def _own_hosts(
    models: Iterable[Model], settings: Settings, resources: Resources
) -> dict[Model, Host]:
    environ: Mapping[str, str] = os.environ
    if settings.dry_run or settings.prune or settings.cache_mode == "replay":
        # Nothing is sent, so no key is needed, and ambiguous keys are no problem.
        environ = {name: url for name, url in environ.items() if name.endswith("_BASE_URL")}
    try:
        found = endpoints(models, environ, resources.redactor)
    except KeyProblem as error:
        raise pytest.UsageError(str(error)) from None
    shared: dict[Endpoint, Host] = {}
    programs = program_hosts(found, settings, resources)
    for model, endpoint in found.items():
        if model in programs:
            continue
        host = Host(
            name=model.address,
            url=endpoint.url,
            open=_opener(model, endpoint, settings.timeout),
            recorded=model.provider != "offline",
            accepts_tools=model.provider != "offline",
            custom=is_custom(model),
            timeout=settings.timeout,
            served=partial(served_models, endpoint) if is_custom(model) else None,
            caches_prompts=endpoint.wire == "anthropic" and endpoint.own,
        )
        programs.setdefault(model, shared.setdefault(endpoint, host))
    return {model: programs[model] for model in found}


def _opener(model: Model, endpoint: Endpoint, timeout: float) -> Callable[[], Client]:
    def open_client() -> Client:
        # Only if all answers were recorded, but a recording is unreadable.
        for line in model_problems(model):
            raise ProviderError(line, fatal=True)
        return make_client(endpoint, timeout=timeout)

    return open_client


def _plugin_opener(
    client: Client, model: Model, timeout: float, redactor: Redactor
) -> Callable[[], Client]:
    return lambda: PluginClient(client, model.address, timeout=timeout, redactor=redactor)


def _problems(
    ahead: Estimate, served: Mapping[Model, Host], settings: Settings, prices: Prices
) -> list[str]:
    """Return why requests cannot be sent, one line for each reason."""
    if settings.cache_mode == "replay":
        return []
    own = (each.model for each in ahead.everything if not served[each.model].given)
    problems = [line for model in own for line in model_problems(model)]
    if settings.max_cost is not None:
        problems += [f"--upskill-max-cost: {prices.unknown(model)}" for model in ahead.unpriced]
    return problems


def model_problems(model: Model) -> list[str]:
    """Return why requests to a model cannot be sent, one line for each reason."""
    if model.provider not in {*BY_PREFIX, "offline"}:
        close = get_close_matches(model.provider, BY_PREFIX, n=1)
        meant = f" (did you mean '{close[0]}:'?)" if close else ""
        # What is behind an '@' may be a host, and what is before it a password.
        shown = re.sub(":[^:]*@", f":{HIDDEN}@", model.address)
        line = (
            f"--upskill-models: no provider for {shown!r}{meant}: write a host such as openrouter: "
            "or ollama:, or model@base_url, or add a plugin with the hook "
            "pytest_upskill_make_client"
        )
        return [line]
    problems = (missing_sdk(model), missing_key(model, os.environ), refused_parameter(model))
    return [line for line in problems if line]


def _sandbox_problems(trials: Iterable[Trial], resources: Resources) -> list[str]:
    if not any(sandboxed_of(trial.case) for trial in trials):
        return []
    from pytest_upskill.sandbox.run import SandboxError

    try:
        _ = resources.compilers().level
    except SandboxError as error:
        return [f"--upskill-sandbox: {error}"]
    return []


def _recording(args: Sequence[str]) -> str:
    """Return the command line of this session, changed so that it records."""
    command = shlex.join(["pytest", *map(without_userinfo, args)])
    command, replaced = _REPLAY.subn(r"\1auto", command)
    return command if replaced else f"{command} --upskill-cache auto"
