"""Skills inside Python packages, which pytest would import."""

from __future__ import annotations

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}


@pytest.mark.parametrize("option", ["--upskill-models=offline", "--upskill-lint"])
def test_a_skill_in_a_python_package_does_not_import_the_package(
    run_once: Run, write_skill: WriteSkill, option: str
) -> None:
    package = write_skill(CASE).parent
    (package / "__init__.py").write_text("import nosuch\n", "utf-8")

    result = run_once(option, "skills")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*nosuch*")


def test_the_tests_of_a_package_with_skills_still_set_it_up(
    run_once: Run, write_skill: WriteSkill
) -> None:
    package = write_skill(CASE).parent
    (package / "__init__.py").write_text("def setup_module(): print('set up')\n", "utf-8")
    (package / "test_first.py").write_text("def test_one(): pass\n", "utf-8")

    result = run_once("--upskill-models", "offline", "-s", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert "set up" in result.stdout.str()
