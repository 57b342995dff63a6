"""Which verdicts make a cell red: ``--upskill-fail-on``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run
from tests.scripted_model import Script

HURTS = {"one": "----- +++++", "two": "----- +++++"}
NO_EFFECT = {f"case{number}": "+++++ +++++" for number in range(6)}
TOO_FEW = {"one": "++--- +----"}


@pytest.mark.parametrize(
    ("cases", "words", "red"),
    [
        (HURTS, None, "the skill hurts"),
        (HURTS, "", None),
        (NO_EFFECT, "hurts, no-effect", "the skill has no effect"),
        (TOO_FEW, None, None),
    ],
)
def test_a_cell_is_red_for_the_verdicts_chosen(
    script: Script, run_once: Run, cases: dict[str, str], words: str | None, red: str | None
) -> None:
    args = script(**cases)
    options = () if words is None else (f"--upskill-fail-on={words}",)

    result = run_once(*args, "--upskill-min-pass-rate=0", "--upskill-md=out.md", *options)

    assert result.ret == (pytest.ExitCode.TESTS_FAILED if red else pytest.ExitCode.OK)
    if red:
        result.stdout.fnmatch_lines([f"csv on haiku: {red} (*)"])
    # A green pull request whose skill hurts has no tick.
    assert ("\u2705" in Path("out.md").read_text("utf-8")) == (not red and cases is not HURTS)


def test_the_ini_file_chooses_too(script: Script, run_once: Run, pytester: pytest.Pytester) -> None:
    args = script(**TOO_FEW)
    pytester.makeini("[pytest]\nupskill_fail_on = too-few-runs")

    result = run_once(*args, "--upskill-min-pass-rate=0")

    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_unknown_verdict_is_refused_in_one_line(script: Script, run_once: Run) -> None:
    args = script(**TOO_FEW)

    result = run_once(*args, "--upskill-fail-on=hurt")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.lines[0] == (
        "ERROR: --upskill-fail-on: must be 'hurts', 'regression', 'no-effect', 'too-few-runs', "
        "'uncalibrated' or 'cases', got \"hurt\""
    )
