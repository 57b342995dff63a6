"""Runs without one of the plugins that pytest brings."""

from __future__ import annotations

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

OFFLINE = ("--upskill-models", "offline", "skills")


def test_without_a_terminal(run: Run, write_skill: WriteSkill) -> None:
    write_skill()

    assert run(*OFFLINE, "-p", "no:terminal").ret == pytest.ExitCode.OK


def test_without_skip_marks_a_case_that_cannot_run_is_skipped_all_the_same(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "file", "input": QUESTION, "expected": {"file_exists": "a.txt"}})

    result = run_once(*OFFLINE, "-p", "no:skipping")

    result.assert_outcomes(skipped=2)


def test_without_python_files(run_once: Run, write_skill: WriteSkill) -> None:
    (write_skill() / "test_script.py").write_text("", "utf-8")

    assert run_once(*OFFLINE, "-p", "no:python").ret == pytest.ExitCode.OK
