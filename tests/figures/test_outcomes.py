"""How the outcome of a trial is shown: letters, words, skips and errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Reply

META = "skills/billing/skill_meta.json"
CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}
BUILDS = {"id": "builds", "input": "Add in C.", "expected": {"compile": "c"}}


def models(loopback: Loopback) -> tuple[str, str]:
    return "--upskill-models", f"m@{loopback.openai_url}"


def letters(result: pytest.RunResult) -> list[str]:
    """Return the letters of the progress lines, sorted: workers finish in any order."""
    progress = re.compile(r"(?:\S+\.json |gates: )?([.FEs+-]+)(?: +\[ *\d+%\])?")
    return sorted(
        "".join(found[1] for line in result.outlines if (found := progress.fullmatch(line)))
    )


@pytest.fixture
def _no_compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(("text", "letter"), [("37", "-"), ("offline model", "+")])
def test_the_arm_without_the_skill_passes_with_a_letter_for_its_real_result(
    run: Run, write_skill: WriteSkill, text: str, letter: str
) -> None:
    write_skill(CASE | {"expected": {"contains": text}})

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    assert letters(result) == sorted([".", ".", letter])


@pytest.mark.parametrize(
    ("text", "words"), [("37", "BASELINE FAIL"), ("offline model", "BASELINE PASS")]
)
def test_verbose_says_the_real_result_in_words(
    run_once: Run, write_skill: WriteSkill, text: str, words: str
) -> None:
    write_skill(CASE | {"expected": {"contains": text}})

    result = run_once("--upskill-models", "offline", "-v", "skills")

    result.stdout.fnmatch_lines([f"{META}::budget?offline-without_skill? {words} *"])


def test_trouble_at_the_provider_is_an_error_in_both_arms_and_never_a_failure(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = lambda _: Reply(status=401, text="bad key")
    write_skill(CASE)

    result = run_once(*models(loopback), "skills")

    assert letters(result) == ["E", "E", "s"]
    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["m: HTTP 401 bad key: no key was sent: set UPSKILL_API_KEY"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ("max_tokens", "the answer was cut at the output limit: raise --upskill-max-tokens"),
        ("refusal", "the model refused to answer"),
    ],
)
def test_a_failed_answer_that_was_cut_or_refused_says_so(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, stop: str, message: str
) -> None:
    loopback.answer = lambda _: Reply(text="It is 3", stop=stop)
    write_skill(CASE)

    result = run_once(*models(loopback), "skills")

    result.assert_outcomes(failed=1, passed=2)
    assert letters(result) == ["-", ".", "F"]
    result.stdout.fnmatch_lines([message, "0 of 1 checks passed"])


@pytest.mark.usefixtures("_no_compilers")
def test_a_missing_compiler_skips_before_anything_is_asked(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(CASE, BUILDS)

    result = run_once(*models(loopback), "-rs", "skills")

    assert len(loopback.requests) == 2
    result.assert_outcomes(failed=1, passed=2, skipped=2)
    result.stdout.fnmatch_lines([f"SKIPPED [[]2] {META}: no gcc or clang on PATH*"])


@pytest.mark.usefixtures("_no_compilers")
def test_the_gate_decides_on_what_this_machine_can_run(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(CASE, BUILDS, gate={"min_lift": 1})

    result = run_once("--upskill-models", "offline", "-v", "skills")

    result.assert_outcomes(passed=3, skipped=2)
    result.stdout.fnmatch_lines([f"{META}::gate?offline? PASSED *"])


@pytest.mark.usefixtures("_no_compilers")
def test_a_required_compiler_that_is_missing_is_an_error(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(BUILDS)

    result = run_once(*models(loopback), "--upskill-require-compilers", "skills")

    assert loopback.requests == []
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert letters(result) == ["E", "E"]
    result.stdout.fnmatch_lines(["skills/billing/skill_meta.json:1:12: no gcc or clang on PATH*"])


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("option", "word"), [((), "s"), (("--upskill-require-compilers",), "E")])
def test_a_required_library_that_is_missing_is_reported_before_any_request(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, option: tuple[str, ...], word: str
) -> None:
    requires = {"compile": {"language": "c", "requires": ["stdio.h", "torch/extension.h"]}}
    write_skill(BUILDS | {"expected": requires})

    result = run_once(*models(loopback), *option, "-rs", "skills")

    assert loopback.requests == []
    assert letters(result) == [word, word]
    result.stdout.fnmatch_lines(["*header 'torch/extension.h' is not installed here: *"])


@pytest.mark.needs("gcc")
def test_an_answer_that_does_not_build_fails_with_the_line_of_the_answer(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = lambda _: "Here:\n\n```c\nint add(int a, int b) {\n  return a + c;\n}\n```\n"
    write_skill(BUILDS)

    result = run_once(*models(loopback), "skills")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(["compile c: answer line 5: error: 'c' undeclared *"])


def test_a_check_that_cannot_be_decided_is_an_error(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = lambda _: "a" * 64
    write_skill(CASE | {"expected": {"regex": "(a+)+$b"}})

    result = run_once(*models(loopback), "skills")

    assert letters(result) == ["E", "E", "s"]
    result.stdout.fnmatch_lines(["regex '(a+)+$b' took over 1 s: simplify it"])
