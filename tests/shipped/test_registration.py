"""What is registered in one layer is known to the layers that need it."""

from __future__ import annotations

import re
from pkgutil import resolve_name

import pytest

from pytest_upskill.agents.programs import PROGRAMS
from pytest_upskill.cases.skill_meta.expected import Expected, keys_of
from pytest_upskill.checks.blocks import LANGUAGES, RUNNABLE, canonical
from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.text import Check
from pytest_upskill.models.model import AGENTS
from pytest_upskill.report.files.write import REPORTS
from pytest_upskill.session.options import OPTIONS
from tests.pages import CHECKOUT


def test_every_report_has_an_option() -> None:
    options = {option.name for option in OPTIONS["reports"]}

    assert options.issuperset(REPORTS)


def test_every_built_in_language_has_its_toolchain_and_labels_and_says_whether_it_can_run() -> None:
    languages = Compilers("off").languages

    assert languages.keys() == LANGUAGES.keys()
    assert all(canonical(label) == name for name in languages for label in LANGUAGES[name].split())
    assert {name for name, language in languages.items() if language.runner} == RUNNABLE


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("docs/writing-cases.md", "The languages are {} and {}."),
        ("pytest_upskill/cases/skill_meta/skill_meta.schema.json", "{} or {}."),
        ("example_skills/pytest-upskill/SKILL.md", "`compile` ({}, {})"),
    ],
)
def test_every_built_in_language_is_in_the_docs_and_in_the_schema(page: str, sentence: str) -> None:
    *names, last = (f"`{name}`" for name in LANGUAGES)

    assert sentence.format(", ".join(names), last) in (CHECKOUT / page).read_text("utf-8")


def test_a_teacher_is_told_every_built_in_language() -> None:
    told = re.findall(r"\w+", Compile.for_teacher)

    assert [name for name in LANGUAGES if name not in told] == []


def test_every_agent_that_is_a_program_has_its_adapter() -> None:
    programs = {agent for agent, formats in AGENTS.items() if formats}

    assert programs == PROGRAMS.keys()


def test_everything_that_the_reference_calls_public_can_be_imported() -> None:
    reference = (CHECKOUT / "docs" / "reference.md").read_text("utf-8")
    public = re.findall(r"`(pytest_upskill\.[\w.]+)`", reference)

    assert [resolve_name(name) for name in public]


NO_TEACHER_WRITES = {
    *("command", "file", "file_contains", "file_exists", "git", "judge"),
    *("ran_script", "read_file", "tool_called", "tool_order", "triggered"),
}


def test_every_check_says_what_a_teachers_prompt_says_of_it() -> None:
    kinds: dict[str, type[Check]] = {key: mark.kind for key, (_, mark) in keys_of(Expected).items()}

    assert {key for key, kind in kinds.items() if not kind.for_teacher} == NO_TEACHER_WRITES
