"""A long text of somebody else's costs as many steps as it has characters, not their square."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.compile.c_family import read_figures
from pytest_upskill.models import ProviderError
from pytest_upskill.models.openai import Dialect
from pytest_upskill.teacher.engine import Refused
from pytest_upskill.teacher.versions import check_candidate
from tests.compiling import build

LENGTH = 200_000
FAR_TOO_LONG_S = 20
"""Linear time is some milliseconds, the square of the length is minutes."""


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Fail instead of hanging the suite."""

    def fail(*_: object) -> None:
        pytest.fail(f"not finished after {FAR_TOO_LONG_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, FAR_TOO_LONG_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def long(text: str) -> str:
    return text * (LENGTH // len(text))


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("code", ["/*", "#/**/", "#/*", "# "], ids=repr)
def test_a_compiler_may_quote_a_very_long_line(code: str) -> None:
    result = build(Compilers("limits"), "c", f"\n{long(code)}\n#error seen")

    assert not result.passed


def test_names_of_kernels_may_be_long() -> None:
    assert read_figures(f"{long('1')}\n{long('_1')}") == {}


@pytest.mark.parametrize("text", ["-", "a", "a/", "a.", "`", "~~~ ", "](  ", "http"])
def test_an_edit_may_be_long(text: str) -> None:
    skill = "---\nname: csv\ndescription: Read CSV files.\n---\n"

    with suppress(Refused):
        check_candidate(skill + long(text), skill, [])


@pytest.mark.parametrize("text", ["\n", "max_completion_token", "system role "])
def test_a_refusal_may_be_long(text: str) -> None:
    dialect = Dialect("max_tokens")

    assert dialect.adapted_to(ProviderError(long(text), status=400)) == dialect


@pytest.mark.parametrize("text", ["-", "\n", "a", "skill:", '"a": ', "- ", "a: {"])
def test_a_case_file_may_be_long(text: str, tmp_path: Path) -> None:
    case_file = tmp_path / "evals" / "csv-evals.yaml"
    case_file.parent.mkdir()
    case_file.write_text(f"{long(text)}\nskill:{long(' ')}")

    assert CaseDiscovery(root=tmp_path).owning_skill(case_file) is None
    assert not CaseDiscovery(root=tmp_path).is_case_file(case_file)
