"""The options of a session, read and validated once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.cache import MODES, Mode
from pytest_upskill.answers.prices import OwnPrice
from pytest_upskill.figures.thresholds import FAIL_ON, Thresholds
from pytest_upskill.models import Model
from pytest_upskill.project.files import leads_out
from pytest_upskill.project.git import GitError, merge_base
from pytest_upskill.project.project import RUNS, project_folder
from pytest_upskill.report.files.write import REPORTS
from pytest_upskill.report.junit import DASHBOARDS, Dashboard
from pytest_upskill.sandbox.limits import LEVELS, Level
from pytest_upskill.session.chosen_models import models_and_judge, own_prices
from pytest_upskill.session.options import (
    choice,
    number,
    option_of,
    path,
    positive,
    rate,
    value_of,
    words,
)
from pytest_upskill.trials.trial import runs_of

_SHARD = re.compile(r"(\d{1,4})/(\d{1,4})")

NO_MODELS = (
    "no models chosen: write --upskill-models, such as --upskill-models offline, "
    "or set upskill_models"
)
"""Error message if no models are chosen."""

SETTINGS = pytest.StashKey["Settings"]()
"""Stash key of the settings; absent unless models are chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Values of all options: from the command line, else the ini file, else the default."""

    models: tuple[Model, ...]
    judge: Model | None
    """Model that decides statements about answers; None if there is none."""
    runs: int
    baseline_runs: int | None
    """Number of runs without the skill; None for as many as with it."""
    at_k: int
    """The k of pass@k and pass^k; 0 for none."""
    """Repeats of each trial."""
    min_pass_rate: float | None
    """Minimum share of runs that pass if the case file sets none; None for more than half."""
    thresholds: Thresholds
    """Thresholds of the gates if the case file sets none."""
    compare: str | None
    """What cells are compared with: ``baseline`` or a git ref; None for no comparison."""
    changed_since: str | None
    """Git ref since which a skill's folder must have changed; None runs all skills."""
    project: Path
    """Folder that contains ``.upskill``, whichever folder below it pytest is started in."""
    rootdir: str
    """Pytest's rootdir, which node ids are relative to, relative to the project's folder."""
    baseline_update: bool
    early_stop: bool
    """Whether to skip the remaining runs of a cell once its verdict is clear."""
    concurrency: int
    """Maximum number of requests in flight at one host."""
    max_tokens: int
    """Maximum output tokens of one answer of a model whose parameters set none."""
    timeout: float
    """Timeout of one request, in seconds."""
    require_compilers: bool
    sandbox: Level
    cache_mode: Mode
    cache_dir: Path
    cache_hidden: bool
    """Whether git should ignore the cache folder: it is the default folder."""
    max_cost: float | None
    """Maximum cost of the session in dollars; None for no limit."""
    prices: Mapping[str, OwnPrice]
    """The user's own prices, by label of the model."""
    batch: bool
    """Whether to send requests in batches, where that is possible."""
    dry_run: bool
    prune: bool
    """Whether to delete unused recordings instead of running."""
    reports: Mapping[str, Path]
    """Report files to write at the end, by format."""
    runs_dir: Path | None
    """Folder of the history of runs; None to keep none."""
    junit_properties: tuple[Dashboard, ...]
    """Dashboards for which JUnit properties are repeated."""
    max_cases: int
    """Maximum number of cases in the session."""
    shard: tuple[int, int] | None
    """Number of the shard to run, from 1, and number of shards; None runs all trials."""

    @property
    def makes_files(self) -> bool:
        """Whether results are written, into reports or a history."""
        return bool(self.reports or self.runs_dir)

    @property
    def requested_models(self) -> tuple[Model, ...]:
        """All models that may get requests: those of the trials, and the judge."""
        return self.models if self.judge is None else (*self.models, self.judge)

    @property
    def single_runs(self) -> tuple[Model, ...]:
        """The models of which further runs would repeat the first, if there are any."""
        return tuple(model for model in self.models if runs_of(model, self.runs) < self.runs)

    def in_project(self, path: str) -> str:
        """Return a path from the rootdir relative to the project's folder."""
        return posixpath.normpath(posixpath.join(self.rootdir, path))

    @property
    def ref(self) -> str | None:
        """Git ref that cells are compared with; None for a baseline or no comparison."""
        return None if self.compare == "baseline" else self.compare

    @classmethod
    def from_config(cls, config: pytest.Config) -> Settings:
        """Read and validate all options.

        Raises:
            pytest.UsageError: The value of an option is invalid; the message has the cure.
        """
        project = project_folder(config.rootpath)
        models, judge = models_and_judge(config)
        return cls(
            models=models,
            judge=judge,
            runs=positive(config, "runs"),
            baseline_runs=_if_set(config, "baseline_runs"),
            at_k=_if_set(config, "at_k") or 0,
            min_pass_rate=rate(config, "min_pass_rate"),
            thresholds=Thresholds(
                min_mean_pass_rate=rate(config, "min_mean_pass_rate"),
                min_lift=rate(config, "min_lift", low=-1.0),
                min_recall=rate(config, "min_recall"),
                max_false_triggers=rate(config, "max_false_triggers"),
                fail_on=frozenset(words(config, "fail_on", FAIL_ON)),
            ),
            compare=_ref(config, "compare", project, or_word="baseline"),
            changed_since=_ref(config, "changed_since", project),
            project=project,
            rootdir=config.rootpath.relative_to(project).as_posix(),
            baseline_update=value_of(config, "baseline_update"),
            early_stop=_early_stop(config),
            concurrency=positive(config, "concurrency"),
            max_tokens=positive(config, "max_tokens"),
            timeout=float(positive(config, "timeout")),
            require_compilers=value_of(config, "require_compilers"),
            sandbox=choice(config, "sandbox", LEVELS),
            cache_mode=choice(config, "cache", MODES),
            cache_dir=_cache_dir(config, project),
            cache_hidden=not value_of(config, "cache_dir"),
            max_cost=_max_cost(config),
            prices=own_prices(config),
            batch=value_of(config, "batch"),
            dry_run=value_of(config, "dry_run"),
            prune=value_of(config, "cache_prune"),
            reports={name: file for name in REPORTS if (file := _report(config, name))},
            runs_dir=_runs_dir(config, project),
            junit_properties=words(config, "junit_properties", DASHBOARDS),
            max_cases=value_of(config, "max_cases"),
            shard=_shard(config),
        )


def _if_set(config: pytest.Config, name: str) -> int | None:
    """Return a positive number, None if the option is not set."""
    return None if value_of(config, name) is None else positive(config, name)


def runs_tests(config: pytest.Config) -> bool:
    """Return whether tests run, and so need answers: not with --collect-only or --setup-only."""
    return not (config.option.collectonly or config.getoption("setuponly", False))


def _ref(
    config: pytest.Config, name: str, project: Path, *, or_word: str | None = None
) -> str | None:
    """Return a git ref, or the word ``or_word``; None if the option is not set.

    Raises:
        pytest.UsageError: git cannot resolve the ref, or it has no common commit with HEAD.
    """
    ref = value_of(config, name) or None
    try:
        # A bad ref in the ini file must not stop runs without skills: skills report it when they
        # are collected. In a worker of pytest-xdist that would be an internal error.
        check_now = config.getoption(f"upskill_{name}") or config.getoption("numprocesses", None)
        if ref not in {None, or_word} and check_now:
            merge_base(project, ref)
    except GitError as error:
        raise pytest.UsageError(f"{option_of(name)}: {error}") from None
    return ref


def _shard(config: pytest.Config) -> tuple[int, int] | None:
    value = value_of(config, "shard")
    if value is None:
        return None
    match = _SHARD.fullmatch(value)
    number, shards = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= shards:
        raise pytest.UsageError(
            f"--upskill-shard: bad shard {value!r}: write K/N, such as 1/4 for the first of four"
        )
    return number, shards


def _report(config: pytest.Config, name: str) -> Path | None:
    file = path(config, name.replace("-", "_"))
    if file is not None and file.is_dir():
        raise pytest.UsageError(f"--upskill-{name}: {file} is a folder: write the name of a file")
    return file


def _runs_dir(config: pytest.Config, project: Path) -> Path | None:
    folder = value_of(config, "runs_dir")
    if folder:
        return Path(config.rootpath, folder)
    return project / STATE / RUNS if value_of(config, "log_runs") else None


def _early_stop(config: pytest.Config) -> bool:
    """Return whether to stop early.

    Raises:
        pytest.UsageError: Another option needs all runs, or sees only some of the trials.
    """
    if not value_of(config, "early_stop"):
        return False
    compare = value_of(config, "compare")
    for given, option, why in (
        (compare, f"--upskill-compare {compare}", "needs all runs"),
        (
            value_of(config, "baseline_update"),
            "--upskill-baseline-update",
            "needs all runs",
        ),
        (
            value_of(config, "min_lift") is not None,
            "--upskill-min-lift",
            "needs all runs, as stopping early overstates the lift",
        ),
        (
            value_of(config, "baseline_runs") is not None,
            "--upskill-baseline-runs",
            "has no rounds, of one run in each arm",
        ),
        (_shard(config) is not None, "--upskill-shard", "would stop on the results of one shard"),
    ):
        if given:
            raise pytest.UsageError(
                f"--upskill-early-stop: {option} {why}: leave one of the two out"
            )
    return True


def _cache_dir(config: pytest.Config, project: Path) -> Path:
    folder = path(config, "cache_dir") or project / STATE / "cache"
    if folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"--upskill-cache-dir: {folder} is not a folder: name another")
    if target := leads_out(folder.absolute()):
        raise pytest.UsageError(
            f"--upskill-cache-dir: {folder}: a link leads out of the project: name {target} itself"
        )
    return folder


def _max_cost(config: pytest.Config) -> float | None:
    value = number(config, "max_cost", float, "dollars such as 2 or 0.50")
    if value is not None and not value > 0:
        raise pytest.UsageError(f"--upskill-max-cost must be more than 0 dollars, got {value:g}")
    return value
