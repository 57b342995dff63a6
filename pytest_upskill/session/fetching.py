"""Before the first request: check that trials can be answered, then start the service.

The process that sends the requests calls `prepare`, `start_service` and at the end `stop_service`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from pytest_upskill.answers.estimate import CostForecast, forecast
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.service import Service
from pytest_upskill.grading.grade import Answer, sandboxed_of
from pytest_upskill.models import Model
from pytest_upskill.project.redaction import without_userinfo
from pytest_upskill.session.hosts import (
    agent_problems,
    hosts,
    installed_versions,
    model_problems,
    runs_ahead,
)
from pytest_upskill.session.items import TrialItem, needing_answers
from pytest_upskill.session.progress import Progress
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import SETTINGS, Settings, runs_tests
from pytest_upskill.session.terminal import lines_before_the_run, needs_lines
from pytest_upskill.stats import CaseCounts, early_verdict, look_alpha
from pytest_upskill.trials.trial import Trial

_REPLAY_OPTION = re.compile(r"(--upskill-cache[= ])replay\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Trials whose answers can be fetched, by key, with their hosts and the cost forecast."""

    trials: Mapping[str, Trial]
    hosts: Mapping[Model, Host]
    forecast: CostForecast


def prepare(config: pytest.Config, trials: Mapping[str, Trial]) -> Prepared:
    """Check, before any request is sent, that every trial can be answered.

    Args:
        config: Config of this process.
        trials: Trials that need answers, by key.

    Raises:
        pytest.UsageError: A provider is unknown, an SDK or a key is missing, a price is missing
            under a cost limit, or the sandbox does not work. The message has a line for each.
    """
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    judge = settings.judge if any(t.case.judge_checks for t in trials.values()) else None
    models = dict.fromkeys(trial.model for trial in trials.values())
    host_of = hosts(config, models if judge is None else models | {judge: None})
    cost_forecast = forecast(
        trials.values(), host_of, resources, judge=judge, concurrency=settings.concurrency
    )
    if not settings.dry_run:
        problems = [
            *_request_problems(cost_forecast, host_of, settings, resources.prices),
            *_sandbox_problems(trials.values(), resources),
            *agent_problems(cost_forecast, host_of, resources),
        ]
        if problems:
            raise pytest.UsageError("\n".join(dict.fromkeys(problems)))
    return Prepared(trials=trials, hosts=host_of, forecast=cost_forecast)


def start_service(config: pytest.Config, prepared: Prepared) -> Service:
    """Start to fetch the answers to the trials, in the order of the items."""
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    if resources.cache.mode in {"auto", "refresh"}:
        resources.cache.served_models.update(_fetch_served_models(prepared.hosts))
    if resources.cache.mode == "auto":
        resources.cache.installed_agents.update(installed_versions(prepared.hosts))
    stops_at_failure = bool(config.getoption("maxfail") or config.getoption("stepwise", False))
    may_waste_answers = stops_at_failure and not settings.early_stop
    return Service(
        prepared.trials,
        prepared.hosts,
        resources,
        concurrency=settings.concurrency,
        # A session that stops at a failure must not have paid for many answers beyond it.
        lookahead=runs_ahead(prepared.hosts, settings) if may_waste_answers else None,
        judge=settings.judge,
        record_command=resources.redactor.redact(_recording_command(config.invocation_params.args)),
        why_stop=_why_stop if settings.early_stop else None,
    )


def _fetch_served_models(host_of: Mapping[Model, Host]) -> dict[tuple[str, str], str]:
    """Ask all custom hosts at once what they serve, and return it by URL and model name."""
    names: dict[Host, list[str]] = {}
    for model, host in host_of.items():
        if host.fetch_served_models is not None:
            names.setdefault(host, []).append(model.name)

    def fetch(host: Host) -> dict[tuple[str, str], str]:
        assert host.fetch_served_models is not None
        texts = host.fetch_served_models(names[host])
        return {(host.url, name): text for name, text in texts.items()}

    with ThreadPoolExecutor(len(names) or 1, thread_name_prefix="upskill-served") as threads:
        return {key: text for served in threads.map(fetch, names) for key, text in served.items()}


def stop_service(config: pytest.Config, service: Service) -> None:
    """Stop the service; what it leaves behind is printed at the end of the session."""
    lines = []
    try:
        service.stop()
    except Exception as error:  # noqa: BLE001  an SDK's or a plugin's, of a client that was closed
        lines.append(f"upskill: {error}")
    lines += config.stash[RESOURCES].batches.lines()
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        for line in lines:
            config.add_cleanup(partial(reporter.line, line, yellow=True))


def _why_stop(cases: Sequence[CaseCounts], done: int, planned: int, look: int) -> str | None:
    """Return why no further round is needed, None if one is."""
    return early_verdict(cases, done, planned, look_alpha(look))


def _request_problems(
    cost_forecast: CostForecast, host_of: Mapping[Model, Host], settings: Settings, prices: Prices
) -> list[str]:
    """Return why requests cannot be sent, one line for each reason."""
    if settings.cache_mode == "replay":
        return []
    models = [estimate.model for estimate in cost_forecast.all_models]
    problems = []
    for model in models:
        if not host_of[model].from_plugin:
            problems += model_problems(model)
    if settings.max_cost is not None:
        problems += [
            f"--upskill-max-cost: {prices.problem(model)}" for model in cost_forecast.unpriced
        ]
    return problems


def _sandbox_problems(trials: Iterable[Trial], resources: Resources) -> list[str]:
    """Return why checks cannot run in the sandbox, if any check needs it."""
    if not any(sandboxed_of(trial.case) for trial in trials):
        return []
    from pytest_upskill.sandbox.run import SandboxError

    try:
        _ = resources.compilers().level
    except SandboxError as error:
        return [f"--upskill-sandbox: {error}"]
    return []


def _recording_command(args: Sequence[str | os.PathLike[str]]) -> str:
    """Return the command line of this session, changed so that it records."""
    command = shlex.join(["pytest", *(without_userinfo(os.fspath(arg)) for arg in args)])
    command, replaced = _REPLAY_OPTION.subn(r"\1auto", command)
    return command if replaced else f"{command} --upskill-cache auto"


class FetchedAnswers:
    """Plugin that fetches answers in the process that runs the items."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._needs: list[str] = []
        self._prepared: Prepared | None = None
        self._service: Service | None = None
        self._progress: Progress | None = None

    # First: pytest's reporter prints the forecast in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check, before the first test, that every trial can be answered."""
        self._needs = needs_lines(session.items)
        if runs_tests(self._config):
            self._prepared = prepare(
                self._config, {item.key: item.trial for item in needing_answers(session.items)}
            )

    def pytest_report_collectionfinish(self) -> list[str]:
        """Return what the cases need, and the forecast of the requests."""
        trials = self._prepared.trials.values() if self._prepared else ()
        cost_forecast = self._prepared.forecast if self._prepared else None
        return lines_before_the_run(self._config, self._needs, trials, cost_forecast)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool | None:
        """Run nothing in a dry run."""
        return True if self._config.stash[SETTINGS].dry_run else None

    def stop(self) -> None:
        """Stop fetching."""
        if self._service is not None:
            stop_service(self._config, self._service)

    def wait_for_answers(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        if self._service is None or self._progress is None:
            assert self._prepared is not None
            # Not before the first trial: a session that stops earlier must cost nothing.
            self._service = start_service(self._config, self._prepared)
            self._progress = Progress(self._config, self._service, self._prepared.trials)
        self._service.prioritize(item.key)
        return self._progress.wait(item.key)
