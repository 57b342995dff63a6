"""``--tb=line`` with failures of cases and gates."""

from __future__ import annotations

import pytest

from tests.conftest import Run
from tests.scripted_model import Script

CASE = "contains 'right': not in the answer (5 characters; begins 'wrong')"


def test_tb_line_is_one_line_for_each_failure_of_a_case_or_gate(run: Run, script: Script) -> None:
    args = script(one="- +")

    result = run(*args, "--tb=line", "--upskill-min-lift=0.5")

    lines = [line for line in result.outlines if not line.startswith("[gw")]
    start = next(number for number, line in enumerate(lines) if "= FAILURES =" in line)
    end = next(number for number, line in enumerate(lines) if "= skills: " in line)
    case, gate = lines[start + 1 : end]
    assert case.startswith("skills/csv/skill_meta.json:1: ")
    assert case.endswith(CASE)
    assert gate.startswith("skills/csv/skill_meta.json:1: csv on haiku: lift is under +50 points")
    result.stdout.fnmatch_lines(["FAILED skills/csv/*::one?haiku-with_skill? - contains 'right'*"])


def test_tb_line_leaves_other_reports_and_other_tests_alone(
    run_once: Run, script: Script, pytester: pytest.Pytester
) -> None:
    args = script(one="- +")
    pytester.makepyfile(test_other="def test_other():\n    print('said')\n    assert 1 == 2\n")

    result = run_once(*args, "test_other.py", "--tb=line", "--junitxml=junit.xml")

    result.stdout.fnmatch_lines(["said", "*test_other.py:3: assert 1 == 2"])
    written = (pytester.path / "junit.xml").read_text("utf-8")
    assert "0 of 1 checks passed" in written
    assert "| wrong" in written
