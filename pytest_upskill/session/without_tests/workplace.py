"""Sessions for commands that need a session's settings and hosts but run no tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_upskill.answers.workplace import WorkError, Workplace
from pytest_upskill.models import Model, ModelError
from pytest_upskill.session.answers.hosts import hosts, model_problems
from pytest_upskill.session.options.models import read_model
from pytest_upskill.session.plugin_hooks import decider, extensions_of
from pytest_upskill.session.resources import set_up

Work = Callable[[Workplace, tuple[Model, ...], Model, Path], int]
"""Does the work with the workplace, the students, the teacher and the folder of ``.upskill``."""


def run_in_session(
    work: Work,
    *,
    place: Path,
    teacher: str,
    students: Sequence[str],
    base_url: str | None,
    arguments: Sequence[str] = (),
) -> int:
    """Do work with the settings of the pytest session that would run at a place.

    Args:
        work: What is to be done; returns the exit code.
        place: A file or folder, by which pytest finds its settings and plugins.
        teacher: The teacher's name, as in --upskill-models.
        students: The students' names.
        base_url: Server of the students whose names tell no provider.
        arguments: Further options of pytest.

    Returns:
        The exit code; 4 if pytest refuses its settings.
    """
    models = [f"--upskill-models={each}" for each in students]
    url = [f"--upskill-base-url={base_url}"] if base_url else []
    # Capturing would prevent the user from typing answers at the terminal. As this package is
    # imported already, pytest would warn that it cannot rewrite its assertions.
    options = [*models, *url, *arguments, "--capture=no", "--assert=plain"]
    start = place if place.exists() else Path()
    return int(pytest.main([*options, str(start)], plugins=[_Work(work, teacher)]))


class _Work:
    """Plugin that does the work where pytest would start to collect tests."""

    def __init__(self, work: Work, teacher: str) -> None:
        self._work = work
        self._teacher = teacher

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Do the work; raise UsageError for what the user can fix."""
        settings, resources = set_up(config)
        try:
            teacher = read_model(config, self._teacher)
        except ModelError as error:
            raise pytest.UsageError(f"--model: {error}") from None
        resources.redactor.learn(*teacher.userinfo.split(":"))
        workplace = Workplace(
            resources=resources,
            hosts=lambda models: hosts(config, models),
            concurrency=settings.concurrency,
            judge=settings.judge,
            max_tokens=settings.max_tokens,
            extensions=extensions_of(config.hook, resources.languages),
            decide=lambda case: decider(config.hook, case),
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
