"""Sessions that run no test: pruning, the catalogue file, the work of a teacher."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.cache import Cache
from pytest_upskill.answers.recording_format import Recording
from pytest_upskill.answers.resources import WorkError, Workplace
from pytest_upskill.answers.trial_runner import JUDGEMENT, recorded_steps
from pytest_upskill.cases.catalogue import Catalogue, Catalogues, write_catalogue
from pytest_upskill.cases.discovery import skill_folders, title_of
from pytest_upskill.models import Model, ModelError, Request
from pytest_upskill.project.files import ANSWERS, DRAFTS, read_state
from pytest_upskill.project.messages import counted, safe_line
from pytest_upskill.session.case_files import catalogue_file, catalogues_of
from pytest_upskill.session.chosen_models import read_model, refuse_secrets, with_parameters
from pytest_upskill.session.hosts import hosts, model_problems
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.messages import write
from pytest_upskill.session.resources import RESOURCES, decider, extensions_of, set_up
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.trials.trial import Trial, request
from pytest_upskill.trials.trigger_trial import probe


class Prune:
    """Plugin that deletes unused recordings, in a dry run lists them, and runs no test."""

    def __init__(self, config: pytest.Config, *, dry_run: bool) -> None:
        self._config = config
        self._dry_run = dry_run
        self._deselected = False

    def pytest_deselected(self) -> None:
        """Record that some items are deselected."""
        self._deselected = True

    # First: no test may start.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Delete unused recordings, and run no test.

        Raises:
            pytest.UsageError: Not all trials were collected, so a recording may still be in use.
        """
        trials = [item.trial for item in session.items if isinstance(item, TrialItem)]
        reason = "" if trials else "there are no trials"
        if self._deselected or any("::" in arg for arg in self._config.args):
            reason = "some trials are deselected"
        if session.testsfailed:
            reason = "some files could not be collected"
        if reason:
            raise pytest.UsageError(
                f"--upskill-cache-prune: {reason}, so recordings in use would be deleted too: "
                "select all cases and models that have recordings"
            )
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        unused = self._unused(trials)
        for file, recording in unused:
            if reporter is not None:
                line = f"{os.path.relpath(file)}: {recording.subject}, {recording.recorded}"
                write(reporter, line)
            if not self._dry_run:
                file.unlink(missing_ok=True)
        if reporter is not None:
            folder = self._config.stash[RESOURCES].cache.folder
            done = "would be deleted" if self._dry_run else "deleted"
            write(reporter, f"upskill: {counted(len(unused), 'recording')} in {folder} {done}")
        return True

    def _unused(self, trials: Sequence[Trial]) -> list[tuple[Path, Recording]]:
        """Return the recordings that no trial uses, and no skill that is not selected."""
        host_of = hosts(self._config, dict.fromkeys(trial.model for trial in trials))
        cache = self._config.stash[RESOURCES].cache
        project = self._config.stash[SETTINGS].project

        def requests(run: int) -> Iterator[tuple[Request, str]]:
            for trial in trials:
                url = host_of[trial.model].url
                yield from ((request, url) for request in _requests(trial, run, cache, url))

        # A teacher's command continues from its recordings until its folder is deleted.
        lists = (project / STATE / DRAFTS).glob(f"*/{ANSWERS}")
        of_teacher = {name for file in lists for name in read_state(file).decode().split()}
        others = {name for each in skill_folders(project) for name in (each.name, title_of(each))}
        others -= {trial.skill.name for trial in trials}
        return [
            (file, recording)
            for file, recording in cache.unused(requests)
            # A judgement depends on the text of the answer, which no trial contains: keep them all.
            if not recording.subject.startswith(JUDGEMENT)
            and file.parent.name + file.stem not in of_teacher
            and recording.subject.partition("::")[0] not in others
        ]


def _requests(trial: Trial, run: int, cache: Cache, url: str) -> Iterator[Request]:
    """Yield the requests of a run, also those that follow from recorded replies."""
    if not trial.chooses:
        yield request(trial, run)
        return
    yield probe(trial.model, trial.max_tokens)
    steps = recorded_steps(trial, run, lambda sent: cache.load(sent, url))
    yield from (sent for sent, _ in steps)


_USAGE_ERROR = 4
"""Exit code of a usage error."""


def update_catalogue(config: pytest.Config) -> int:
    """Write the skills in and next to the named folders; return the exit code."""
    catalogues = Catalogues(root=config.rootpath)
    folders = [catalogues.folder(folder) for folder in _folders(config)]
    skills = [skill for folder in folders for skill in folder.catalogue.skills]
    catalogue = Catalogue.of(skills)
    file = catalogue_file(config)
    if not catalogue.skills:
        _print(f"ERROR: --upskill-catalogue-update: no skill in {', '.join(config.args)}: name one")
        return _USAGE_ERROR
    try:
        written = write_catalogue(file, catalogue)
    except OSError as error:
        _print(f"ERROR: --upskill-catalogue-update: {file}: {error.strerror}")
        return _USAGE_ERROR
    for reason in (reason for folder in folders for reason in folder.left_out):
        _print(f"upskill: not listed: {reason}")
    state = "written, commit it" if written else "is up to date"
    shown = os.path.relpath(file, config.invocation_params.dir)
    _print(f"upskill: catalogue of {counted(len(catalogue.skills), 'skill')}: {shown} {state}")
    return 0


def _folders(config: pytest.Config) -> list[Path]:
    """Return the folders that hold folders of skills, in and around the arguments."""
    start = config.invocation_params.dir
    named = [Path(start, argument.partition("::")[0]).absolute() for argument in config.args]
    tops = [path if path.is_dir() else path.parent for path in named]
    return sorted({folder.parent for top in tops for folder in skill_folders(top)})


def _print(line: str) -> None:
    sys.stdout.write(f"{safe_line(line)}\n")


Work = Callable[[Workplace, tuple[Model, ...], Model, Path], int]
"""Does the work with the workplace, the students, the teacher and the folder of ``.upskill``."""


def run_in_session(
    work: Work, place: Path, *, teacher: str, parameters: Sequence[str], arguments: Sequence[str]
) -> int:
    """Do work with the settings of the pytest session that would run at a place.

    Args:
        work: What is to be done; returns the exit code.
        place: A file or folder, by which pytest finds its settings and plugins.
        teacher: The teacher's name, as in --upskill-models.
        parameters: Parameters of the teacher's requests, each as ``KEY=VALUE``.
        arguments: Options of pytest; their models are the students.

    Returns:
        The exit code; 4 if pytest refuses its settings.
    """
    # Capturing would prevent the user from typing answers at the terminal. As this package is
    # imported already, pytest would warn that it cannot rewrite its assertions.
    options = [*arguments, "--capture=no", "--assert=plain"]
    start = place if place.exists() else Path()
    return int(pytest.main([*options, str(start)], plugins=[_Work(work, teacher, parameters)]))


def settings_at(place: Path) -> tuple[Path, Path | None, list[str]]:
    """Return pytest's rootdir and ini file for a place, and the models that the ini file names."""
    reader = _Reader()
    pytest.main(["--capture=no", "--assert=plain", str(place)], plugins=[reader])
    config = reader.config
    if config is None:
        return place, None, []
    return config.rootpath, config.inipath, config.getini("upskill_models")


class _Reader:
    """Plugin that keeps the config of a session, which does nothing else."""

    config: pytest.Config | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Keep the config, and do nothing."""
        self.config = config
        return 0


class _Work:
    """Plugin that does the work where pytest would start to collect tests."""

    def __init__(self, work: Work, teacher: str, parameters: Sequence[str]) -> None:
        self._work = work
        self._teacher = teacher
        self._parameters = parameters

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Do the work; raise UsageError for what the user can fix."""
        settings, resources = set_up(config)
        try:
            teacher = read_model(config, self._teacher)
        except ModelError as error:
            raise pytest.UsageError(f"--model: {error}") from None
        resources.redactor.learn(*teacher.userinfo.split(":"))
        refuse_secrets(self._parameters, resources.redactor)
        (teacher,), _ = with_parameters((teacher,), None, self._parameters)
        workplace = Workplace(
            resources=resources,
            hosts=lambda models: hosts(config, models),
            concurrency=settings.concurrency,
            judge=settings.judge,
            max_tokens=settings.max_tokens,
            extensions=extensions_of(config.hook, resources.languages),
            decide=lambda case: decider(config.hook, case),
            catalogues=lambda: catalogues_of(config),
        )
        problems: list[str] = []
        for model, host in hosts(config, dict.fromkeys((teacher, *settings.models))).items():
            if not host.from_plugin:
                problems += model_problems(model)
        if problems and settings.cache_mode != "replay" and not settings.dry_run:
            raise pytest.UsageError("\n".join(dict.fromkeys(problems)))
        try:
            return self._work(workplace, settings.models, teacher, settings.project / ".upskill")
        except WorkError as error:
            raise pytest.UsageError(str(error)) from None
        except OSError as error:
            raise pytest.UsageError(f"{error.filename}: {error.strerror}") from None
