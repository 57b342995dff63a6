"""Answers of a session: what must hold before the first request, the start and the end."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from pytest_upskill.answers.estimate import CostForecast, forecast
from pytest_upskill.answers.resources import Host
from pytest_upskill.answers.service import Service
from pytest_upskill.grading.grade import Answer, sandboxed_of
from pytest_upskill.models import Model
from pytest_upskill.project.redaction import without_userinfo
from pytest_upskill.session import hosts
from pytest_upskill.session.items import needing_answers
from pytest_upskill.session.progress import Progress, interruptible
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import SETTINGS, runs_tests
from pytest_upskill.session.terminal import lines_before_the_run, needs_lines
from pytest_upskill.trials.trial import Trial

_REPLAY_OPTION = re.compile(r"(--upskill-cache[= ])replay\b")
_REPORT_OPTION = re.compile(r" --(?:upskill-(?:html|md|json)|junit-?xml)[= ](?:'[^']*'|\S+)")


def _fetch_served_models(host_of: Mapping[Model, Host]) -> dict[tuple[str, str], str]:
    """Ask all custom hosts at once what they serve, and return it by URL and model name."""
    fetchers = {host: fetch for host in host_of.values() if (fetch := host.fetch_served_models)}
    names = {
        host: [model.name for model, its in host_of.items() if its is host] for host in fetchers
    }
    threads = ThreadPoolExecutor(len(names) or 1, thread_name_prefix="upskill-served")
    with interruptible(), threads:
        found = threads.map(lambda host: fetchers[host](names[host]), names)
        served = zip(names, found, strict=True)
        return {(host.url, name): text for host, of in served for name, text in of.items()}


def _recording_command(args: Sequence[str | os.PathLike[str]]) -> str:
    """Return the command line of this session, changed so that it records, without reports."""
    command = shlex.join(["pytest", *(without_userinfo(os.fspath(arg)) for arg in args)])
    command, replaced = _REPLAY_OPTION.subn(r"\1auto", _REPORT_OPTION.sub("", command))
    return command if replaced else f"{command} --upskill-cache auto"


class Fetching:
    """The answers of a session, in the process that sends the requests: checked, then fetched."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings, self._resources = config.stash[SETTINGS], config.stash[RESOURCES]
        self._trials: Mapping[str, Trial] = {}
        """The trials that need answers, by key."""
        self._hosts: Mapping[Model, Host] = {}
        self._forecast = CostForecast(trials=0, runs=0, models=())
        self._service: Service | None = None

    def prepare(self, trials: Mapping[str, Trial]) -> None:
        """Check, before any request is sent, that every trial can be answered.

        Args:
            trials: Trials that need answers, by key.

        Raises:
            pytest.UsageError: A provider is unknown, an SDK or a key is missing, a price is missing
                under a cost limit, or the sandbox does not work. The message has a line for each.
        """
        settings, resources, self._trials = self._settings, self._resources, trials
        models = [trial.model for trial in trials.values()]
        models += [
            trial.judge for trial in trials.values() if trial.judge and trial.case.judge_checks
        ]
        self._hosts = hosts.hosts_of(self._config, dict.fromkeys(models))
        self._forecast = forecast(
            trials.values(), self._hosts, resources, concurrency=settings.concurrency
        )
        if not settings.dry_run and (problems := dict.fromkeys(self._problems())):
            raise pytest.UsageError("\n".join(problems))

    def _problems(self) -> Iterator[str]:
        """Yield why the trials cannot be answered and checked, one line for each reason."""
        settings, resources = self._settings, self._resources
        if settings.cache_mode != "replay":
            models = [estimate.model for estimate in self._forecast.all_models]
            yield from hosts.request_problems({model: self._hosts[model] for model in models})
            if settings.max_cost is not None:
                for model in self._forecast.unpriced:
                    yield f"--upskill-max-cost: {resources.prices.problem(model)}"
            agents = [model for model in models if model.agent]
            yield from hosts.agent_problems(agents, self._hosts, resources)
        if any(sandboxed_of(trial.case) for trial in self._trials.values()):
            from pytest_upskill.sandbox.run import SandboxError

            try:
                resources.compilers().open_sandbox()
            except SandboxError as error:
                yield f"--upskill-sandbox: {error}"

    def start(self) -> tuple[Service, Progress]:
        """Start to fetch the answers to the trials, in the order of the items."""
        config, settings, cache = self._config, self._settings, self._resources.cache
        if cache.mode in {"auto", "refresh"}:
            cache.served_models.update(_fetch_served_models(self._hosts))
        if cache.mode == "auto":
            cache.installed_agents.update(hosts.installed_versions(self._hosts))
        stops_at_failure = config.getoption("maxfail") or config.getoption("stepwise", False)
        may_waste_answers = stops_at_failure and not settings.early_stop
        command = _recording_command(config.invocation_params.args)
        self._service = Service(
            self._trials,
            self._hosts,
            self._resources,
            concurrency=settings.concurrency,
            # A session that stops at a failure must not have paid for many answers beyond it.
            lookahead=hosts.runs_ahead(self._hosts, settings) if may_waste_answers else None,
            record_command=self._resources.redactor.redact(command),
        )
        return self._service, Progress(config, self._service, self._trials)

    def stop(self) -> None:
        """Stop fetching; what the service leaves behind is printed at the end of the session."""
        if self._service is None:
            return
        lines = []
        try:
            self._service.stop()
        except Exception as error:  # noqa: BLE001  an SDK's or a plugin's, of a client that was closed
            lines.append(f"upskill: {error}")
        lines += self._resources.batches.lines()
        if reporter := self._config.pluginmanager.get_plugin("terminalreporter"):
            for line in lines:
                self._config.add_cleanup(partial(reporter.line, line, yellow=True))


class FetchedAnswers(Fetching):
    """Plugin that fetches answers in the process that runs the items."""

    _progress: Progress | None = None

    # First: pytest's reporter prints the forecast in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check, before the first test, that every trial can be answered."""
        if runs_tests(self._config):
            self.prepare({item.key: item.trial for item in needing_answers(session.items)})

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Return what the cases need, and the forecast of the requests."""
        return lines_before_the_run(self._config, needs_lines(items), self._forecast)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool | None:
        """Run nothing in a dry run."""
        return True if self._settings.dry_run else None

    def wait_for_answers(self, key: str) -> list[Answer]:
        """Wait for the answers to all runs of a trial and return them."""
        if self._progress is None:
            # Not before the first trial: a session that stops earlier must cost nothing.
            _, self._progress = self.start()
        return self._progress.wait(key)
