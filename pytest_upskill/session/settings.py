"""The options of a session, read and validated once."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field, InstanceOf, ValidationError

from pytest_upskill import STATE
from pytest_upskill.answers.prices import OwnPrice
from pytest_upskill.answers.recordings import Mode
from pytest_upskill.cases.source.document import explained
from pytest_upskill.figures.gate import FailOn, Thresholds
from pytest_upskill.models import Model
from pytest_upskill.project.files import BASELINES, RUNS, leads_out
from pytest_upskill.project.git import GitError, merge_base
from pytest_upskill.report.files.write import REPORTS, why_not_to_write
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.session.case_files import project_of
from pytest_upskill.session.chosen_models import models_and_judge, own_prices
from pytest_upskill.session.options import option_of, path_of, place_of, usage_errors, value_of

NO_MODELS = (
    "no models chosen: write --upskill-models, such as --upskill-models offline, "
    "or set upskill_models"
)
"""Error message if no models are chosen."""

SETTINGS = pytest.StashKey["Settings"]()
"""Stash key of the settings; absent unless models are chosen."""

Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, le=1)]


def _split(words: object) -> object:
    return filter(None, map(str.strip, words.split(","))) if isinstance(words, str) else words


class Settings(BaseModel, frozen=True, allow_inf_nan=False):
    """Values of all options: from the command line, else the ini file, else the default."""

    models: tuple[InstanceOf[Model], ...]
    judge: InstanceOf[Model] | None
    prices: Mapping[str, InstanceOf[OwnPrice]]
    """The user's own prices, by label of the model."""
    project: Path
    """Folder that contains ``.upskill``, whichever folder below it pytest is started in."""
    rootdir: Path
    """Pytest's rootdir, which node ids are relative to."""
    compare: str | None
    """What cells are compared with: ``baseline`` or a git ref; None for no comparison."""
    changed_since: str | None
    """Git ref since which a skill's folder must have changed; None runs all skills."""
    cache_dir: Path
    reports: Mapping[str, Path]
    """Report files to write at the end, by format."""
    runs_dir: Path | None
    """Folder of the history of runs; None to keep none."""
    runs: Count
    """Repeats of each trial."""
    baseline_runs: Count | None = None
    """Number of runs without the skill; None for as many as with it."""
    at_k: Count = 0
    """The k of pass@k and pass^k; 0 for none."""
    min_pass_rate: Rate | None = None
    """Minimum share of runs that pass if the case file sets none; None for more than half."""
    min_mean_pass_rate: Rate | None = None
    min_lift: Annotated[float, Field(ge=-1, le=1)] | None = None
    min_recall: Rate | None = None
    max_false_triggers: Rate | None = None
    fail_on: Annotated[frozenset[FailOn], BeforeValidator(_split)]
    baseline_update: bool
    early_stop: bool
    """Whether to skip the remaining runs of a cell once its verdict is clear."""
    concurrency: Count
    """Maximum number of requests in flight at one host."""
    max_tokens: Count
    """Maximum output tokens of one answer of a model whose parameters set none."""
    timeout: Count
    """Timeout of one request, in seconds."""
    require_compilers: bool
    sandbox: Level
    cache_mode: Mode = Field(alias="cache")
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """Maximum cost of the session in dollars; None for no limit."""
    batch: bool
    """Whether to send requests in batches, where that is possible."""
    dry_run: bool
    prune: bool = Field(alias="cache_prune")
    """Whether to delete unused recordings instead of running."""

    @property
    def thresholds(self) -> Thresholds:
        """Thresholds of the gates if the case file sets none."""
        return Thresholds(**{each.name: getattr(self, each.name) for each in fields(Thresholds)})

    @property
    def requested_models(self) -> tuple[Model, ...]:
        """All models that may get requests: those of the trials, and the judge."""
        return self.models if self.judge is None else (*self.models, self.judge)

    @property
    def baselines_dir(self) -> Path:
        """Folder of the baselines."""
        return self.project / STATE / BASELINES

    @property
    def ref(self) -> str | None:
        """Git ref that cells are compared with; None for a baseline or no comparison."""
        return None if self.compare == "baseline" else self.compare


def read_settings(config: pytest.Config) -> Settings:
    """Read and validate the options.

    Raises:
        pytest.UsageError: The values of options are invalid; the message has a line for each.
    """
    project = project_of(config)
    models, judge = models_and_judge(config)
    values: dict[str, Any] = {
        "models": models,
        "judge": judge,
        "prices": own_prices(config),
        "project": project,
        "rootdir": config.rootpath,
        "compare": _ref(config, "compare", project),
        "changed_since": _ref(config, "changed_since", project),
        "cache_dir": _cache_dir(config, project),
        "reports": _reports(config),
        "runs_dir": path_of(config, "runs_dir")
        or (project / STATE / RUNS if value_of(config, "log_runs") else None),
    }
    others = {field.alias or name for name, field in Settings.model_fields.items()} - {*values}
    given = {name: value_of(config, name) for name in sorted(others)}
    values |= {name: value for name, value in given.items() if value is not None}
    try:
        settings = Settings(**values)
    except ValidationError as error:
        problems = [
            f"{place_of(config, str(each['loc'][0]))}: {explained(each)}" for each in error.errors()
        ]
        raise pytest.UsageError("\n".join(problems)) from None
    needs_all = ("compare", "baseline_update", "min_lift", "baseline_runs", "batch")
    for name in needs_all if settings.early_stop else ():
        value = getattr(settings, name)
        if value is not None and value is not False:
            why = f"{option_of(name)} needs all runs: leave one of the two out"
            raise pytest.UsageError(f"--upskill-early-stop: {why}")
    return settings


def runs_tests(config: pytest.Config) -> bool:
    """Return whether tests run, and so need answers: not with --collect-only or --setup-only."""
    return not (config.option.collectonly or config.getoption("setuponly", False))


def _ref(config: pytest.Config, name: str, project: Path) -> str | None:
    """Return a git ref, or the word ``baseline``; None if the option is not set.

    Raises:
        pytest.UsageError: git cannot resolve the ref, or it has no common commit with HEAD.
    """
    given = config.getoption(f"upskill_{name}")
    # In an ini file, an empty value turns a setting off; on a command line, a variable is unset.
    ref: str | None = value_of(config, name) or given
    # A bad ref in the ini file must not stop runs without skills: skills report it when they are
    # collected. In a worker of pytest-xdist that would be an internal error.
    check_now = given is not None or config.getoption("numprocesses", None)
    if ref not in {None, "baseline"} and check_now:
        with usage_errors(GitError, option_of(name)):
            merge_base(project, ref)
    return ref


def _reports(config: pytest.Config) -> Mapping[str, Path]:
    found = {name: file for name in REPORTS if (file := path_of(config, name)) is not None}
    for name, file in found.items():
        problem = why_not_to_write(name, file)
        if [*found.values()].count(file) > 1:
            problem = "two reports in one file: write another name for one of them"
        if problem:
            raise pytest.UsageError(f"--upskill-{name}: {file}: {problem}")
    return found


def _cache_dir(config: pytest.Config, project: Path) -> Path:
    folder = path_of(config, "cache_dir") or project / STATE / "cache"
    if folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"--upskill-cache-dir: {folder} is not a folder: name another")
    if target := leads_out(folder.absolute()):
        raise pytest.UsageError(
            f"--upskill-cache-dir: {folder}: a link leads out of the project: name {target} itself"
        )
    return folder
