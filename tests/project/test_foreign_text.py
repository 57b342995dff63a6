"""Text of models, servers and repositories steers neither a terminal nor a CI runner."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from pytest_upskill.project.messages import safe, safe_line
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

HOSTILE = (
    "\x1b[2J\u202eevil\u2028::error file=x::one\n::warning::two\n  ::add-mask::three\r\n"
    "four ##[error]five ##vso[task.setvariable variable=x]six\t##teamcity[testFailed]\x85\u2066"
)
COMMAND = re.compile(r"##\w*\[|^\s*::\w", re.MULTILINE)
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def steering(text: str) -> list[str]:
    """List what a terminal or a CI runner would act on."""
    found = [*COMMAND.finditer(text), *CONTROL.finditer(text)]
    return [text[max(0, match.start() - 60) : match.end() + 20] for match in found]


def test_the_hostile_text_holds_commands_of_runners_and_terminals() -> None:
    assert len(COMMAND.findall(HOSTILE)) == 5
    assert len(set(CONTROL.findall(HOSTILE))) == 6


def test_safe_text_shows_what_it_was_made_from() -> None:
    assert steering(safe(HOSTILE)) == []
    assert safe(HOSTILE) == (
        "\\x1b[2J\\x202eevil\\x2028::error file=x::one\n: :warning::two\n  : :add-mask::three\n"
        "four # #[error]five # #vso[task.setvariable variable=x]six\t"
        "# #teamcity[testFailed]\\x85\\x2066"
    )


@pytest.mark.parametrize(
    "text",
    [
        "## [1.2] - a heading\n### more",
        "x[1:2], std::vector<int>, a::b::c",
        "first:\n  :only one colon",
        "#[derive(Debug)]",
        "tabs\tand\nlines",
        "日本語 ✓ 😀",
    ],
)
def test_text_without_commands_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


def test_safe_text_stays_safe() -> None:
    assert safe(safe(HOSTILE)) == safe(HOSTILE)
    assert safe_line(safe_line(HOSTILE)) == safe_line(HOSTILE)
    assert len(safe_line(HOSTILE).splitlines()) == 1


def test_no_text_makes_it_search_for_long() -> None:
    started = time.process_time()
    safe(("\n" * 50_000 + " " * 50_000 + "#" * 50_000) * 2)

    assert time.process_time() - started < 2


def _answer(received: Received) -> Reply:
    if received.body["model"] == "judge":
        verdict = {"statement": 1, "holds": False, "quote": "", "reason": HOSTILE}
        return Reply(text=json.dumps({"verdicts": [verdict]}))
    if received.user == "refuse":
        return Reply(status=400, body={"error": {"message": HOSTILE}})
    if received.user == "code":
        comment = HOSTILE.replace("\n", "\n# ").replace("\r", "")
        code = f"# {comment}\nprint({HOSTILE!r})\nassert False, {HOSTILE!r}\n"
        return Reply(text=f"```python\n{code}\n```")
    return Reply(text=HOSTILE, model=HOSTILE)


def test_nothing_foreign_steers_a_terminal_or_a_runner(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    folder = write_skill(
        {"id": "answer", "input": "answer", "expected": {"contains": HOSTILE}},
        {"id": "pattern", "input": "answer", "expected": {"regex": "zz"}},
        {"id": "data", "input": "answer", "expected": {"json": {"a": HOSTILE}}},
        {"id": "judged", "input": "answer", "expected": {"judge": HOSTILE}},
        {"id": "refused", "input": "refuse", "expected": {"contains": "x"}},
        {"id": "code", "input": "code", "expected": {"run": {"language": "python", "code": "1"}}},
        {"id": "other", "input": "answer", "expected": {"contains": "x"}, "models": [HOSTILE]},
    )
    skill = folder / "SKILL.md"
    key = json.dumps("extra" + HOSTILE)
    skill.write_text(skill.read_text("utf-8").replace("name:", f"{key}: 1\nname:", 1), "utf-8")
    loopback.answer = _answer

    result = run(
        f"--upskill-models=m=openai:small@{loopback.openai_url}",
        f"--upskill-judge=openai:judge@{loopback.openai_url}",
        *("-W", "default", "--color=no", "-rA", "-vv", "--showlocals", "--tb=long"),
        *(f"--upskill-{name}=out.{name}" for name in ("md", "html")),
        *("--junitxml=out.xml", "--log-cli-level=DEBUG", "skills"),
    )

    told = result.stdout.str() + result.stderr.str()
    for shown in ("\\x1b[2J", ": :warning::two", "# #[error]five", "# #vso[", "# #teamcity["):
        assert told.count(shown) > 5, shown
    written = [Path(f"out.{name}").read_text("utf-8") for name in ("md", "html", "xml")]
    assert [steering(text) for text in (told, *written)] == [[], [], [], []]


MODELS = "--upskill-models=offline"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("a\n::error::b", (MODELS,)),
        ("a\n::error::b", (MODELS, "--co")),
        ("a\n::error::b", ("--upskill-lint",)),
        ("##[error]b", (MODELS,)),
        ("\x1b[2Jb", (MODELS, "-q")),
        ("b\u202egpj", (MODELS,)),
        ("::error::b", (MODELS,)),
    ],
)
def test_a_folder_whose_name_would_steer_them_is_refused_by_a_safe_name(
    run_once: Run, write_skill: WriteSkill, name: str, args: tuple[str, ...]
) -> None:
    write_skill().rename(Path("skills", name))

    result = run_once(*args, "-v", "--color=no", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = result.stdout.str() + result.stderr.str()
    assert steering(told) == []
    result.stdout.fnmatch_lines(["*: the name of the file or a folder contains *: rename it"])


@pytest.mark.parametrize("name", ["##[error]x", "::error::x", "##vso[x"])
def test_a_skill_whose_name_is_a_command_is_refused(
    run_once: Run, write_skill: WriteSkill, name: str
) -> None:
    folder = write_skill()
    skill = folder / "SKILL.md"
    text = skill.read_text("utf-8").replace("name: billing", f"name: '{name}'")
    skill.write_text(text, "utf-8")

    result = run_once("--upskill-models=offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert steering(result.stdout.str()) == []
    result.stdout.fnmatch_lines(["*SKILL.md:2:7: name: must not contain a CI runner's command*"])


def test_an_id_that_makes_a_command_of_a_node_id_is_refused(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "x##", "input": "?", "expected": {"contains": "x"}})

    result = run_once("--upskill-models=offline", "skills")

    assert steering(result.stdout.str()) == []
    why = "must be one line of printable characters, without * '##' *"
    result.stdout.fnmatch_lines([f"*cases?0?.id: {why}"])


def test_what_a_hook_raises_or_prints_about_an_answer_steers_nothing_and_shows_no_key(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UPSKILL_API_KEY", "sk-planted-0123456789")
    write_skill()
    pytester.makeconftest(
        f"""
        import os

        def pytest_runtest_call(item):
            text = {HOSTILE!r} + os.environ["UPSKILL_API_KEY"]
            print(text)
            raise ValueError(text)
        """
    )

    args = ("--showlocals", "--full-trace", "-vv", "-rA", "--color=no")
    result = run_once("--upskill-models=offline", *args, "skills")

    result.stdout.fnmatch_lines(["E * ValueError: \\x1b[[]2J*", "*# #vso[[]task*[*][*][*]*"])
    assert steering(result.stdout.str()) == []
    assert "sk-planted" not in result.stdout.str()


def test_warnings_of_lint_steer_nothing(run_once: Run, write_skill: WriteSkill) -> None:
    file = write_skill() / "SKILL.md"
    text = file.read_text("utf-8").replace("---\n", f"---\n{json.dumps(HOSTILE)}: 1\n", 1)
    file.write_text(text, "utf-8")

    result = run_once(
        "--upskill-lint", "--upskill-models=offline", "-W", "default", "--color=no", "skills"
    )

    result.stdout.fnmatch_lines(["*u001b[[]2J*evil*: unknown key: *"])
    assert steering(result.stdout.str()) == []
