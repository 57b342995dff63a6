"""The plan before a run: answers, tokens and the most that they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_upskill.answers.prices import max_input_tokens
from pytest_upskill.models import Request, Tool, parse_model
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Reply


def test_the_plan_says_how_much_there_is_to_ask(
    run: Run, write_skill: WriteSkill, model: str, pytester: pytest.Pytester
) -> None:
    write_skill(*budget_cases(2))
    pytester.makeini("[pytest]\nupskill_prices = m = 1/1\n")
    run("--upskill-models", model, "skills")

    result = run("--upskill-models", model, "--upskill-runs", "3", "skills")

    result.stdout.re_match_lines(
        [r"upskill: 4 trials, 12 answers: 4 recorded, 8 to request, at most \$0\.06\d\d, likely"]
    )
    assert "requested 8 answers: $0.0001; replayed 4 answers" in result.stdout.str()
    assert (pytester.path / ".upskill").exists()


def test_equal_requests_of_two_skills_are_planned_once_and_sent_once(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    case = {"id": "a", "input": "What?", "expected": {"contains": "37"}}
    for name in ("billing", "shipping"):
        write_skill(case, name=name)

    result = run_once("--upskill-models", model, "--upskill-min-pass-rate=0", "skills")

    plan = "upskill: 4 trials, 4 answers: 0 recorded, 1 equal to others, 3 to request*"
    result.stdout.fnmatch_lines([plan, "requested 3 answers: *; replayed 1 answer: *"])


def test_a_dry_run_needs_no_key_and_sends_nothing(
    run: Run, write_skill: WriteSkill, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    write_skill(*budget_cases(2))

    result = run("--upskill-models", "haiku,sonnet", "--upskill-dry-run", "-q", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert loopback.requests == []
    result.assert_outcomes()
    result.stdout.re_match_lines(
        [
            r"upskill: 8 trials, 8 answers: 0 recorded, 8 to request, at most \$0\.3\d{3}, likely",
            r"  haiku: 4 to request, at most \$0\.0\d{3}, likely \$0\.00\d\d$",
            r"  sonnet: 4 to request, at most \$0\.3\d{3}, likely \$0\.0\d{3}$",
        ],
        consecutive=True,
    )


def test_the_bound_of_a_plan_is_rounded_up(
    run_once: Run, write_skill: WriteSkill, model: str, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makeini("[pytest]\nupskill_prices = m = 0/5\n")

    result = run_once(
        "--upskill-models", model, "--upskill-max-tokens", "100401", "--upskill-dry-run", "skills"
    )

    result.stdout.fnmatch_lines(
        ["upskill: 2 trials, *, 2 to request, at most $1.01, likely $0.0060"]
    )


def test_a_plan_without_all_prices_says_so(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill()

    result = run_once(
        "--upskill-models", f"haiku,m=small@{loopback.openai_url}", "--upskill-dry-run", "skills"
    )

    result.stdout.fnmatch_lines(
        [
            "upskill: 4 trials, *, 4 to request, cost n/a",
            "  haiku: *$0.0*, likely $0.0*",
            "  m: 2 to request, cost n/a",
            "upskill: no price is known for 'openai:small@127.0.0.1:*': set upskill_prices = *",
        ]
    )


def test_a_plan_without_a_price_list_says_how_to_get_one(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.answers.prices.find_spec", lambda _: None)
    write_skill()

    result = run_once("--upskill-models", "haiku", "--upskill-dry-run", "skills")

    result.stdout.fnmatch_lines(
        [
            "upskill: 2 trials, *, 2 to request, cost n/a",
            "upskill: no price is known for *: pip install genai-prices, or set upskill_prices =*",
        ]
    )


LONG = Reply(text="37", usage={"prompt_tokens": 50, "completion_tokens": 2000}, delay=0.2)


def test_the_likely_cost_is_that_of_recordings_of_the_case_and_of_the_model(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, pytester: pytest.Pytester
) -> None:
    write_skill(*budget_cases(2))
    pytester.makeini("[pytest]\nupskill_prices = m = 0/10\n")
    args = ("--upskill-models", f"m=small@{loopback.openai_url}", "skills")
    loopback.answer = lambda _: LONG
    run_once(*args, "-k", "case-0")

    of_case = run_once(*args, "-k", "case-0", "--upskill-runs=3", "--upskill-dry-run")
    of_model = run_once(*args, "-k", "case-1", "--upskill-dry-run")

    of_case.stdout.fnmatch_lines(["*: 2 recorded, 4 to request*, likely $0.0800, in about 1 s"])
    of_model.stdout.fnmatch_lines(["*: 0 recorded, 2 to request*, likely $0.0400, in about 1 s"])


def test_a_long_catalogue_counts_as_prose() -> None:
    prose = "Read tables of comma separated values from disk. " * 100
    tool = Tool.of_texts("skill", "Load", name="n")
    request = Request(
        model=parse_model("haiku"), frame="", skill=prose, user="", max_tokens=1, run=0
    )

    alone, chosen = (max_input_tokens(replace(request, tools=tools)) for tools in ((), (tool,)))

    assert len(prose) < alone
    assert chosen < 0.6 * len(prose) + 300
