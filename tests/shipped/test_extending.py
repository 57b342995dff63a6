"""The hooks for checks and languages do what the page about them says, whoever runs the items."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Reply
from tests.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "extending.md"


@pytest.fixture
def checks(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(_example("max_words"))


def _example(word: str) -> str:
    examples = PAGE.read_text("utf-8").split('```python title="conftest.py"\n')[1:]
    (code,) = [code.partition("```")[0] for code in examples if word in code]
    return code


def _case(**expected: object) -> dict[str, object]:
    return {"id": "a", "input": QUESTION, "expected": expected}


@pytest.mark.usefixtures("checks")
def test_a_plugin_decides_the_check_that_it_claims(run: Run, write_skill: WriteSkill) -> None:
    write_skill(_case(max_words=500), _case(max_words=1, contains="37") | {"id": "b"})

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["max_words 1: the answer has *"])


@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"max_words": "3"}, "*skill_meta.json:*.expected.max_words: must be a whole number"),
        ({"max_wrds": 3}, "*skill_meta.json:*.expected.max_wrds: unknown key*"),
    ],
)
def test_a_value_or_key_that_no_plugin_wants_is_an_error_of_the_file(
    run_once: Run, write_skill: WriteSkill, expected: dict[str, object], line: str
) -> None:
    write_skill(_case(**expected))

    result = run_once("--upskill-models", "offline", "skills")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([line])


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        ("True", {"passed": 3}),
        ("False", {"passed": 2, "failed": 1}),
        ("None", {"errors": 1, "skipped": 1}),
        ("'yes'", {"errors": 1, "skipped": 1}),
    ],
)
def test_a_check_may_return_a_bool_and_nothing_else(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    answer: str,
    outcomes: dict[str, int],
) -> None:
    pytester.makeconftest(
        "def pytest_upskill_claim_check(name, value): return name == 'mine'\n"
        f"def pytest_upskill_check(name, value, answer, case): return {answer}\n"
    )
    write_skill(_case(mine=1))

    result = run_once("--upskill-models", "offline", "skills")

    result.assert_outcomes(**outcomes)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("assert name == 2", "AssertionError: *"),
        ("pytest.fail('no')", "Failed: no"),
    ],
)
def test_what_a_check_raises_is_reported_in_one_line(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, does: str, said: str
) -> None:
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_upskill_claim_check(name, value): return name == 'mine'\n"
        f"def pytest_upskill_check(name, value, answer, case):\n    {does}\n"
    )
    write_skill(_case(mine=1))

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines([f"mine: pytest_upskill_check raised {said} (conftest.py:4)"])
    assert len(result.outlines) < 40


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise OSError('gone')", "raised OSError: gone (conftest.py:2): fix the plugin"),
        ("return 5", "returned int: return a list of languages"),
    ],
)
def test_a_broken_hook_for_languages_is_one_line(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, does: str, said: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_languages():\n    {does}\n")
    write_skill()

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: the hook pytest_upskill_languages {said}"])


def test_a_toolchain_that_raises_leaves_its_check_undecided(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, loopback: Loopback
) -> None:
    pytester.makeconftest(
        """
        from pytest_upskill.checks.compile import Language

        class Broken:
            def missing(self, check):
                return None

            def build(self, sources, check, sandbox):
                raise OSError("no such linker")

        def pytest_upskill_languages():
            return [Language(name="zig", toolchain=Broken())]
        """
    )
    loopback.answer = lambda _: "```zig\nconst x = 37;\n```\n"
    write_skill(_case(compile="zig"))

    result = run_once("--upskill-models", f"m@{loopback.openai_url}", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["compile zig: raised OSError: no such linker (conftest.py:*)"])


@pytest.mark.parametrize(
    ("does", "line"),
    [
        ("return CheckResult(name=name, passed=False, message='a\\ud83d\\nb')", r"* a\ud83d\nb"),
        ("raise CheckError('a\\ud83d')", "* a[?]"),
    ],
)
def test_lone_surrogates_in_a_message_of_a_check_are_replaced(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, does: str, line: str
) -> None:
    pytester.makeconftest(
        "from pytest_upskill.checks import CheckError, CheckResult\n"
        "def pytest_upskill_claim_check(name, value): return name == 'mine'\n"
        f"def pytest_upskill_check(name, value, answer, case): {does}\n"
    )
    write_skill(_case(mine=1))

    result = run_once("--upskill-models", "offline", "--upskill-json", "report.json", "skills")

    result.stdout.fnmatch_lines([line])
    assert json.loads((pytester.path / "report.json").read_text("utf-8"))


@pytest.mark.parametrize(("more", "failed"), [("", 0), (", is_negative=True", 1)])
def test_a_plugin_says_whether_a_cut_answer_shows_that_its_check_holds(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, more: str, failed: int
) -> None:
    Path("conftest.py").write_text(
        "from pytest_upskill.checks import CheckResult\n"
        "def pytest_upskill_claim_check(name, value): return name == 'not_too_long'\n"
        "def pytest_upskill_check(name, value, answer, case):\n"
        f"    return CheckResult(name=name, passed=True, message=name{more})\n",
        "utf-8",
    )
    loopback.answer = lambda _: Reply(text="It is 37.", stop="max_tokens")
    write_skill(_case(not_too_long=1))

    result = run_once("--upskill-models", f"m@{loopback.openai_url}", "skills")

    assert result.parseoutcomes().get("failed", 0) == failed


def _rust_answer(code: str) -> str:
    return f"```rust\n{code}\n```"


@pytest.fixture
def rust(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rustc that takes code with a function in it."""
    home = pytester.path / "rust"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "rustc"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --print ] && echo {home} && exit\n'
        "for file; do :; done\n"
        'grep -q "fn " "$file" || [ ! -s "$file" ] && exit\n'
        'echo "error: expected item" && echo " --> $file:4:1" && exit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    pytester.makeconftest(_example("rustc"))


@pytest.mark.usefixtures("rust")
@pytest.mark.parametrize(
    ("code", "outcomes"),
    [("pub fn add() {}", {"passed": 3}), ("pub func add() {}", {"passed": 2, "failed": 1})],
)
def test_a_plugin_brings_a_language(
    run: Run, write_skill: WriteSkill, code: str, outcomes: dict[str, int]
) -> None:
    question = "Write the function add in Rust."
    write_skill(
        {"id": "a", "input": question, "expected": {"compile": "rs"}},
        body=f"## The function add in Rust\n\n```rs\n{code}\n```\n",
    )

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(**outcomes)
