"""What is registered in one layer is known to the layers that need it."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

from pytest_upskill.agents.programs import PROGRAMS
from pytest_upskill.cases.skill_meta.expected import Expected, keys_of
from pytest_upskill.checks.blocks import LANGUAGES, RUNNABLE
from pytest_upskill.checks.code import Compile, Run
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.text import Check
from pytest_upskill.models.model import AGENTS
from pytest_upskill.report.files.write import REPORTS
from pytest_upskill.session.options import OPTIONS


def test_every_report_has_an_option() -> None:
    options = {option.name for option in OPTIONS["reports"]}

    assert options.issuperset(REPORTS)


def test_every_built_in_language_has_its_compiler_or_runner() -> None:
    compilers = Compilers("off")

    found = [compilers.missing(Compile(language=language)) for language in LANGUAGES]
    found += [compilers.missing(Run(language=language, code="")) for language in RUNNABLE]

    assert not [problem for problem in found if problem and "is known for language" in problem]


def test_every_agent_that_is_a_program_has_its_adapter() -> None:
    programs = {agent for agent, formats in AGENTS.items() if formats}

    assert programs == PROGRAMS.keys()


def test_everything_that_the_reference_calls_public_can_be_imported() -> None:
    reference = Path(__file__).parents[2] / "docs" / "reference.md"
    public = re.findall(r"`(pytest_upskill\.[\w.]+)`", reference.read_text("utf-8"))

    assert [resolve_name(name) for name in public]


NO_TEACHER_WRITES = {
    *("command", "file", "file_contains", "file_exists", "git", "judge"),
    *("ran_script", "read_file", "tool_called", "tool_order", "triggered"),
}


def test_every_check_says_what_a_teachers_prompt_says_of_it() -> None:
    kinds: dict[str, type[Check]] = {key: mark.kind for key, (_, mark) in keys_of(Expected).items()}

    assert {key for key, kind in kinds.items() if not kind.for_teacher} == NO_TEACHER_WRITES
