"""Sessions that run no test: pruning, the catalogue file, the work of a teacher."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.answers.recordings import Cache, Recording
from pytest_upskill.answers.resources import WorkError, Workplace
from pytest_upskill.answers.run import JUDGEMENT, recorded_steps
from pytest_upskill.cases import skill_meta
from pytest_upskill.cases.catalogue import Catalogue, Catalogues, write_catalogue
from pytest_upskill.cases.discovery import skill_folders, title_of
from pytest_upskill.models import Model, Request
from pytest_upskill.project.files import ANSWERS, DRAFTS, MAX_STATE_BYTES, read_file
from pytest_upskill.project.messages import counted, safe_line
from pytest_upskill.session import case_files
from pytest_upskill.session.chosen_models import read_model, refuse_secrets, with_parameters
from pytest_upskill.session.fetching import hosts_of, request_problems
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.messages import write
from pytest_upskill.session.resources import RESOURCES, decider, extensions_of, set_up
from pytest_upskill.session.selection import Selection
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.trials.trial import Trial, request_of
from pytest_upskill.trials.trigger_trial import probe


class Prune:
    """Plugin that deletes unused recordings, in a dry run lists them, and runs no test."""

    def __init__(self, config: pytest.Config, selection: Selection) -> None:
        self._config, self._selection = config, selection
        self._dry_run = config.stash[SETTINGS].dry_run

    # First: no test may start.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Delete unused recordings, and run no test.

        Raises:
            pytest.UsageError: Not all trials were collected, so a recording may still be in use.
        """
        trials = [item.trial for item in session.items if isinstance(item, TrialItem)]
        reason = "" if trials else "there are no trials"
        if self._selection.found.deselected or any("::" in arg for arg in self._config.args):
            reason = "some trials are deselected"
        if session.testsfailed:
            reason = "some files could not be collected"
        if reason:
            raise pytest.UsageError(
                f"--upskill-cache-prune: {reason}, so recordings in use would be deleted too: "
                "select all cases and models that have recordings"
            )
        unused = self._unused(trials)
        lines = [
            f"{os.path.relpath(file)}: {recording.subject}, {recording.recorded}"
            for file, recording in unused
        ]
        for file, _ in unused if not self._dry_run else ():
            file.unlink(missing_ok=True)
        folder = self._config.stash[RESOURCES].cache.folder
        done = "would be deleted" if self._dry_run else "deleted"
        lines.append(f"upskill: {counted(len(unused), 'recording')} in {folder} {done}")
        if reporter := self._config.pluginmanager.get_plugin("terminalreporter"):
            for line in lines:
                write(reporter, line)
        return True

    def _unused(self, trials: Sequence[Trial]) -> list[tuple[Path, Recording]]:
        """Return the recordings that no trial uses, and no skill that is not selected."""
        host_of = hosts_of(self._config, dict.fromkeys(trial.model for trial in trials))
        cache = self._config.stash[RESOURCES].cache
        project = self._config.stash[SETTINGS].project

        def requests(run: int) -> Iterator[tuple[Request, str]]:
            for trial in trials:
                url = host_of[trial.model].url
                yield from ((request, url) for request in _requests(trial, run, cache, url))

        # A teacher's command continues from its recordings until its folder is deleted.
        lists = (project / STATE / DRAFTS).glob(f"*/{ANSWERS}")
        of_teacher = {
            name for file in lists for name in read_file(file, MAX_STATE_BYTES).decode().split()
        }
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
        yield request_of(trial, run)
        return
    yield probe(trial.model, trial.max_tokens)
    yield from (sent for sent, _ in recorded_steps(trial, run, partial(cache.load, url=url)))


def write_schema(path: Path) -> int:
    """Write the JSON Schema of case files for editors; return 0, or 4 if it cannot be written."""
    problem = "no schema: write another name"
    try:
        if not path.is_file() or b'"$id"' in path.read_bytes()[:1000]:
            path.write_bytes(files(skill_meta).joinpath("skill_meta.schema.json").read_bytes())
            return 0
    except OSError as error:
        problem = str(error.strerror)
    sys.stderr.write(f"ERROR: --upskill-write-schema: {path}: {problem}\n")
    return 4


def update_catalogue(config: pytest.Config) -> int:
    """Write the skills in and next to the named folders; return the exit code.

    Raises:
        pytest.UsageError: There is no skill, or the file cannot be written.
    """
    catalogues, file = Catalogues(root=config.rootpath), case_files.catalogue_file(config)
    tops = [path if path.is_dir() else path.parent for path in case_files.arguments_of(config)]
    homes = {folder.parent for top in tops for folder in skill_folders(top)}
    folders = [catalogues.folder(home) for home in sorted(homes)]
    catalogue = Catalogue.of(skill for folder in folders for skill in folder.catalogue.skills)
    if not catalogue.skills:
        where = ", ".join(config.args)
        raise pytest.UsageError(f"--upskill-catalogue-update: no skill in {where}: name one")
    try:
        written = write_catalogue(file, catalogue)
    except OSError as error:
        problem = f"--upskill-catalogue-update: {file}: {error.strerror}"
        raise pytest.UsageError(problem) from None
    lines = [f"not listed: {reason}" for folder in folders for reason in folder.left_out]
    state = "written, commit it" if written else "is up to date"
    skills = counted(len(catalogue.skills), "skill")
    lines.append(f"catalogue of {skills}: {case_files.shown(file, config)} {state}")
    sys.stdout.writelines(f"upskill: {safe_line(line)}\n" for line in lines)
    return 0


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
    start = place if place.exists() else Path()
    return _with_config(start, partial(_work, work, teacher, parameters), arguments)


def settings_at(place: Path) -> tuple[Path, Path | None, list[str]]:
    """Return pytest's rootdir and ini file for a place, and the models that the ini file names."""
    found: list[tuple[Path, Path | None, list[str]]] = []

    def note(config: pytest.Config) -> int:
        found.append((config.rootpath, config.inipath, config.getini("upskill_models")))
        return 0

    _with_config(place, note)
    return found[0] if found else (place, None, [])


def _with_config(
    place: Path, do: Callable[[pytest.Config], int], arguments: Sequence[str] = ()
) -> int:
    """Do something with pytest's config for a place, where it would start to collect tests."""

    class Plugin:
        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: pytest.Config) -> int:
            return do(config)

    # Capturing would prevent the user from typing answers at the terminal. As this package is
    # imported already, pytest would warn that it cannot rewrite its assertions.
    options = [*arguments, "--capture=no", "--assert=plain", str(place)]
    return int(pytest.main(options, plugins=[Plugin()]))


def _work(work: Work, name: str, parameters: Sequence[str], config: pytest.Config) -> int:
    """Do the work; raise UsageError for what the user can fix."""
    settings, resources = set_up(config)
    teacher = read_model(config, name, "--model")
    resources.redactor.learn(*teacher.userinfo.split(":"))
    refuse_secrets(parameters, resources.redactor)
    (teacher,), _ = with_parameters((teacher,), None, parameters)
    workplace = Workplace(
        resources=resources,
        hosts=partial(hosts_of, config),
        max_tokens=settings.max_tokens,
        extensions=extensions_of(config.hook, resources.languages),
        decide=partial(decider, config.hook),
        catalogues=partial(case_files.catalogues_of, config),
    )
    problems = request_problems(hosts_of(config, dict.fromkeys((teacher, *settings.models))))
    if problems and settings.cache_mode != "replay" and not settings.dry_run:
        raise pytest.UsageError("\n".join(dict.fromkeys(problems)))
    try:
        return work(workplace, settings.models, teacher, settings.project / STATE)
    except WorkError as error:
        raise pytest.UsageError(str(error)) from None
    except OSError as error:
        raise pytest.UsageError(f"{error.filename}: {error.strerror}") from None
