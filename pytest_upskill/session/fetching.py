"""Answers of a session: hosts, what must hold before the first request, the start and the end."""

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_upskill.answers.batches import may_have_batches
from pytest_upskill.answers.changed_recordings import merge_targets
from pytest_upskill.answers.estimate import CostForecast, forecast
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.service import Service
from pytest_upskill.grading.grade import Answer, sandboxed_of
from pytest_upskill.models import Client, Model, ProviderError
from pytest_upskill.models.clients import PluginClient, make_client, missing_sdk
from pytest_upskill.models.errors import refused_parameter
from pytest_upskill.models.hosts import BY_PREFIX, HOSTS
from pytest_upskill.models.keys import Endpoint, KeyProblem, endpoints, is_custom, missing_key
from pytest_upskill.models.model import AGENTS
from pytest_upskill.models.served_models import served_models
from pytest_upskill.project.messages import did_you_mean
from pytest_upskill.project.redaction import HIDDEN, without_userinfo
from pytest_upskill.report.files.write import REPORTS
from pytest_upskill.sandbox.limits import cores
from pytest_upskill.session.items import needing_answers
from pytest_upskill.session.options import usage_errors
from pytest_upskill.session.progress import Progress, interruptible
from pytest_upskill.session.resources import RESOURCES, called
from pytest_upskill.session.settings import SETTINGS, Settings, runs_tests
from pytest_upskill.session.terminal import lines_before_the_run, needs_lines
from pytest_upskill.trials.trial import Trial

_REPLAY_OPTION = re.compile(r"(--upskill-cache[= ])replay\b")
_FORMATS = "|".join(REPORTS)
_REPORT_OPTION = re.compile(rf" --(?:upskill-(?:{_FORMATS})|junit-?xml)[= ](?:'[^']*'|\S+)")


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


def _recording_command(args: Sequence[str | os.PathLike[str]], ref: str | None) -> str:
    """Return the command line of this session, changed so that it records, without reports."""
    command = shlex.join(["pytest", *(without_userinfo(os.fspath(arg)) for arg in args)])
    command, replaced = _REPLAY_OPTION.subn(r"\1auto", _REPORT_OPTION.sub("", command))
    # CI replays what a merge would give, where other skills may have other descriptions.
    targets = merge_targets() or filter(None, [ref])
    merges = [f"git fetch && git merge {shlex.quote(each)}" for each in targets]
    return " && ".join([*merges, command if replaced else f"{command} --upskill-cache auto"])


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
        judges = (trial.judge for trial in trials.values() if trial.case.judge_checks)
        models += filter(None, judges)
        self._hosts = hosts_of(self._config, dict.fromkeys(models))
        self._forecast = forecast(trials.values(), self._hosts, resources)
        if not settings.dry_run and (problems := dict.fromkeys(self._problems())):
            raise pytest.UsageError("\n".join(problems))

    def _problems(self) -> Iterator[str]:
        """Yield why the trials cannot be answered and checked, one line for each reason."""
        settings, resources = self._settings, self._resources
        if settings.cache_mode != "replay":
            models = [estimate.model for estimate in self._forecast.all_models]
            yield from request_problems({model: self._hosts[model] for model in models})
            if settings.max_cost is not None:
                for model in self._forecast.unpriced:
                    yield f"--upskill-max-cost: {resources.budget.prices.problem(model)}"
            agents = [model for model in models if model.agent]
            yield from agent_problems(agents, self._hosts, resources)
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
            cache.installed_agents.update(installed_versions(self._hosts))
        stops_at_failure = config.getoption("maxfail") or config.getoption("stepwise", False)
        may_waste_answers = stops_at_failure and not settings.early_stop
        command = _recording_command(config.invocation_params.args, settings.ref)
        cache.record_command = self._resources.redactor.redact(command)
        # A session that stops at a failure must not have paid for many answers beyond it.
        ahead = runs_ahead(self._hosts, settings) if may_waste_answers else None
        self._service = Service(self._trials, self._hosts, self._resources, lookahead=ahead)
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


_VENDORS_BY_NAME = ("anthropic", "openai")
"""Providers whose model is identified by its name alone, on any host."""


def hosts_of(config: pytest.Config, models: Iterable[Model]) -> dict[Model, Host]:
    """Return the host of each model: a plugin's, a program's, or an endpoint's that models share.

    Raises:
        pytest.UsageError: The key of an endpoint is ambiguous, or a plugin's hook fails.
    """
    settings, resources = config.stash[SETTINGS], config.stash[RESOURCES]
    clients = {model: _client(model, config) for model in models}
    plugin_hosts = {
        model: Host(
            name=model.address,
            url="",
            open=partial(PluginClient, client, model.address, redactor=resources.redactor),
            # Not recorded under a vendor's model name: it could be taken for the vendor's.
            records_answers=model.is_language_model and model.provider not in _VENDORS_BY_NAME,
            accepts_tools=getattr(client, "accepts_tools", False) is True,
            from_plugin=True,
        )
        for model, client in clients.items()
        if client is not None
    }
    others = [model for model in clients if model not in plugin_hosts]
    return plugin_hosts | _hosts_without_plugin(others, settings, resources)


def _client(model: Model, config: pytest.Config) -> Client | None:
    """Return the client that a plugin makes for a model, None if no plugin serves it.

    Raises:
        pytest.UsageError: The hook raises an error, or what it returns cannot serve the model.
    """
    hook = f"{model.address}: the hook pytest_upskill_make_client"
    make_client_of_plugin: Callable[..., Client | None] = config.hook.pytest_upskill_make_client
    client = called(make_client_of_plugin, hook, model=model, config=config)
    if client is None:
        return None
    if not (hasattr(client, "complete") and hasattr(client, "aclose")):
        raise pytest.UsageError(
            f"{hook} returned {type(client).__name__}: return a client, with complete and aclose, "
            "or None"
        )
    accepts_parameters = getattr(client, "accepts_parameters", False) is True
    if replace(model.parameters, max_tokens=None) and not accepts_parameters:
        raise pytest.UsageError(
            f"--upskill-param: the client of {model.address} sends no parameters: set "
            "accepts_parameters = True in it once its complete() sends "
            "request.model.parameters"
        )
    return client


def _hosts_without_plugin(
    models: Iterable[Model], settings: Settings, resources: Resources
) -> dict[Model, Host]:
    """Return the hosts of models that no plugin serves; models at one endpoint share its host."""
    environ: Mapping[str, str] = os.environ
    if settings.dry_run or settings.prune or settings.cache_mode == "replay":
        # Nothing is sent, so no key is needed, and ambiguous keys are no problem.
        names = {host.url_variable for host in HOSTS}
        environ = {name: url for name, url in environ.items() if name in names}
    with usage_errors(KeyProblem):
        endpoint_of = endpoints(models, environ, resources.redactor)
    slots = asyncio.Semaphore(_program_slots())
    host_of: dict[Model, Host] = {}
    shared: dict[Endpoint, Host] = {}
    for model, endpoint in endpoint_of.items():
        is_program = model.runs_program
        open_client: Callable[[], Client] = partial(_open, model, endpoint)
        if is_program:
            # Imported here: most runs have no agents.
            from pytest_upskill.agents.program_client import make_program_client

            open_client = partial(make_program_client, model, endpoint, resources, slots)
        host = Host(
            name=model.address,
            url=endpoint.url,
            open=open_client,
            records_answers=model.is_language_model,
            accepts_tools=model.is_language_model,
            runs_agents=is_program,
            fetch_served_models=partial(served_models, endpoint) if is_custom(model) else None,
            may_have_batches=(may_batch := may_have_batches(model)),
            is_vendor_with_batches=may_batch and endpoint.url == BY_PREFIX[model.provider].url,
            caches_prompts=endpoint.wire == "anthropic" and not (model.base_url or is_program),
        )
        host_of[model] = host if is_program else shared.setdefault(endpoint, host)
    return host_of


def _open(model: Model, endpoint: Endpoint) -> Client:
    # The session started in spite of a problem because all answers seemed to be recorded, but a
    # recording is unreadable.
    for problem in _model_problems(model):
        raise ProviderError(problem, fatal=True)
    return make_client(endpoint)


def request_problems(hosts: Mapping[Model, Host]) -> list[str]:
    """Return why requests to models cannot be sent, one line for each reason."""
    return [
        problem
        for model, host in hosts.items()
        if not host.from_plugin
        for problem in _model_problems(model)
    ]


def _model_problems(model: Model) -> list[str]:
    if model.is_language_model and model.provider not in BY_PREFIX:
        known = [f"{each}:" for each in (*BY_PREFIX, *AGENTS)]
        suggestion = did_you_mean(f"{model.provider}:", known)
        # An '@' may stand between a password and a host; before digits it begins a version.
        shown = re.sub(r":[^:]*@(?!\d+$)", f":{HIDDEN}@", model.address)
        line = (
            f"--upskill-models: no provider for {shown!r}{suggestion}: write a host such as "
            "openrouter: or ollama:, or model@base_url, or add a plugin with the hook "
            "pytest_upskill_make_client"
        )
        return [line]
    problems = (missing_sdk(model), missing_key(model, os.environ), refused_parameter(model))
    return [line for line in problems if line]


_PROGRAM_MEMORY = 400 << 20
"""Memory of one program in bytes, an upper bound of what was observed."""


def agent_problems(
    agents: Sequence[Model], hosts: Mapping[Model, Host], resources: Resources
) -> Iterator[str]:
    """Yield why the agents of models cannot run, one line for each reason."""
    if not agents:
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
    programs = [model for model in agents if model.runs_program]
    if programs and level != "bwrap":
        yield (
            f"--upskill-models: {programs[0].agent} runs in bubblewrap only, not in {level}: "
            "install bubblewrap (apt install bubblewrap), and allow it user namespaces (Ubuntu: "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0), or use a Linux container; "
            "a replay needs neither"
        )
    from pytest_upskill.agents.programs import program_problem

    yield from filter(None, map(program_problem, programs))


def installed_versions(models: Iterable[Model]) -> dict[str, str]:
    """Return the versions of the agents of models, by prefix, as far as they are installed."""
    agents = {model.agent for model in models if model.agent}
    if not agents:
        return {}
    from pytest_upskill.agents.loop import VERSION
    from pytest_upskill.agents.programs import PROGRAMS, NoAgentError

    versions = {"loop": VERSION}
    for agent in agents & PROGRAMS.keys():
        with suppress(NoAgentError):
            versions[agent] = PROGRAMS[agent].find().version
    return versions


def runs_ahead(models: Collection[Model], settings: Settings) -> int:
    """Return how many runs may start before a test waits for them, if not all may be needed.

    With agents, whose runs are long and expensive, no more start than can run at once.
    """
    if not any(model.agent for model in models):
        return 2 * settings.concurrency
    slots = [_program_slots() for model in models if model.runs_program]
    return min([settings.concurrency, *slots])


def _program_slots() -> int:
    """Return how many programs may run at once: two per core, if the memory is enough for them."""
    slots = 2 * cores()
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        available_kib = int(available.split()[1])
        slots = min(slots, (available_kib << 10) // _PROGRAM_MEMORY)
    return max(1, slots)
