"""The options of a session, read and validated once."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.cache import MODES
from pytest_upskill.figures.thresholds import FAIL_ON, Thresholds
from pytest_upskill.models import Model
from pytest_upskill.project.files import leads_out
from pytest_upskill.project.git import GitError, merge_base
from pytest_upskill.project.project import RUNS, project_folder
from pytest_upskill.report.files.write import REPORTS
from pytest_upskill.sandbox.limits import LEVELS
from pytest_upskill.session.chosen_models import models_and_judge, own_prices
from pytest_upskill.session.options import (
    choice,
    flag,
    number,
    option_of,
    path,
    positive,
    rate,
    value_of,
    words,
)
from pytest_upskill.trials.trial import runs_of

NO_MODELS = (
    "no models chosen: write --upskill-models, such as --upskill-models offline, "
    "or set upskill_models"
)
"""Error message if no models are chosen."""

SETTINGS = pytest.StashKey["Settings"]()
"""Stash key of the settings; absent unless models are chosen."""


class Settings:
    """Values of all options: from the command line, else the ini file, else the default.

    Raises:
        pytest.UsageError: The value of an option is invalid; the message has the cure.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.models, self.judge = models_and_judge(config)
        self.runs: Final = positive(config, "runs")
        """Repeats of each trial."""
        self.baseline_runs: Final = _if_set(config, "baseline_runs")
        """Number of runs without the skill; None for as many as with it."""
        self.at_k: Final = _if_set(config, "at_k") or 0
        """The k of pass@k and pass^k; 0 for none."""
        self.min_pass_rate: Final = rate(config, "min_pass_rate")
        """Minimum share of runs that pass if the case file sets none; None for more than half."""
        self.thresholds: Final = Thresholds(
            min_mean_pass_rate=rate(config, "min_mean_pass_rate"),
            min_lift=rate(config, "min_lift", low=-1.0),
            min_recall=rate(config, "min_recall"),
            max_false_triggers=rate(config, "max_false_triggers"),
            fail_on=frozenset(words(config, "fail_on", FAIL_ON)),
        )
        """Thresholds of the gates if the case file sets none."""
        self.project: Final = project_folder(config.rootpath)
        """Folder that contains ``.upskill``, whichever folder below it pytest is started in."""
        self.rootdir: Final = config.rootpath.relative_to(self.project).as_posix()
        """Pytest's rootdir, which node ids are relative to, relative to the project's folder."""
        self.compare: Final = _ref(config, "compare", self.project, or_word="baseline")
        """What cells are compared with: ``baseline`` or a git ref; None for no comparison."""
        self.changed_since: Final = _ref(config, "changed_since", self.project)
        """Git ref since which a skill's folder must have changed; None runs all skills."""
        self.baseline_update: Final = flag(config, "baseline_update")
        self.early_stop: Final = _early_stop(config)
        """Whether to skip the remaining runs of a cell once its verdict is clear."""
        self.concurrency: Final = positive(config, "concurrency")
        """Maximum number of requests in flight at one host."""
        self.max_tokens: Final = positive(config, "max_tokens")
        """Maximum output tokens of one answer of a model whose parameters set none."""
        self.timeout: Final = positive(config, "timeout")
        """Timeout of one request, in seconds."""
        self.require_compilers: Final = flag(config, "require_compilers")
        self.sandbox: Final = choice(config, "sandbox", LEVELS)
        self.cache_mode: Final = choice(config, "cache", MODES)
        self.cache_dir: Final = _cache_dir(config, self.project)
        self.max_cost: Final = _max_cost(config)
        """Maximum cost of the session in dollars; None for no limit."""
        self.prices: Final = own_prices(config)
        """The user's own prices, by label of the model."""
        self.batch: Final = flag(config, "batch")
        """Whether to send requests in batches, where that is possible."""
        self.dry_run: Final = flag(config, "dry_run")
        self.prune: Final = flag(config, "cache_prune")
        """Whether to delete unused recordings instead of running."""
        self.reports: Final = _reports(config)
        """Report files to write at the end, by format."""
        self.runs_dir: Final = _runs_dir(config, self.project)
        """Folder of the history of runs; None to keep none."""

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


def _reports(config: pytest.Config) -> Mapping[str, Path]:
    found = {name: path(config, name.replace("-", "_")) for name in REPORTS}
    for name, file in found.items():
        if file is not None and file.is_dir():
            raise pytest.UsageError(
                f"--upskill-{name}: {file} is a folder: write the name of a file"
            )
    return {name: file for name, file in found.items() if file is not None}


def _runs_dir(config: pytest.Config, project: Path) -> Path | None:
    folder = value_of(config, "runs_dir")
    if folder:
        return Path(config.rootpath, folder)
    return project / STATE / RUNS if value_of(config, "log_runs") else None


def _early_stop(config: pytest.Config) -> bool:
    """Return whether to stop early.

    Raises:
        pytest.UsageError: Another option needs all runs.
    """
    if not flag(config, "early_stop"):
        return False
    needs_all = "needs all runs"
    for other, why in (
        ("compare", needs_all),
        ("baseline_update", needs_all),
        ("min_lift", f"{needs_all}, as stopping early overstates the lift"),
        ("baseline_runs", "has no rounds, of one run in each arm"),
    ):
        given = value_of(config, other)
        if given is not None and given is not False and given != "":
            raise pytest.UsageError(
                f"--upskill-early-stop: {option_of(other)} {why}: leave one of the two out"
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
