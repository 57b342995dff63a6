"""``--upskill-max-cost`` is never exceeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import UNTESTED_PLUGINS, Run, WriteSkill, budget_cases
from tests.forked import forked_commands
from tests.loopback import Loopback, Reply


@pytest.fixture(autouse=True)
def _cases(write_skill: WriteSkill) -> None:
    write_skill(*budget_cases(10))


@pytest.fixture
def model(model: str, pytester: pytest.Pytester) -> str:
    """Set a price of a dollar for a million tokens; an answer then costs $0.000018."""
    pytester.makeini("[pytest]\nupskill_prices = m = 1/1\n")
    return model


CURE = "raise the limit: what is recorded is not paid again"


def in_500_tokens(model: str) -> tuple[str, ...]:
    return "--upskill-models", model, "--upskill-max-tokens", "500", "skills"


def test_the_limit_stops_before_it_could_be_passed_and_keeps_what_was_paid_for(
    run: Run, loopback: Loopback, model: str
) -> None:
    limit, answer = 0.001, 0.000018
    args = (*in_500_tokens(model), "-rs")

    result = run(*args, "--upskill-max-cost", str(limit), "--upskill-md=out.md")
    sent = len(loopback.requests)
    whole = run(*args)

    assert result.ret == NOT_MEASURED
    assert 0 < sent < 20
    assert (sent - 1) * answer + 500e-6 <= limit
    result.assert_outcomes(passed=sent, skipped=20 - sent + 1)
    result.stdout.fnmatch_lines(
        [
            "skipped: * cases: --upskill-max-cost: not sent, as it could exceed the limit",
            f"exit code 75: --upskill-max-cost: stopped, as the next * exceed $0.001: {CURE}",
            "SKIPPED * --upskill-max-cost: not sent, as it could exceed the limit",
        ]
    )
    assert sum(CURE in line for line in result.outlines) == 1
    page = Path("out.md").read_text("utf-8")
    assert page.count(CURE) == 1
    assert "not everything ran" not in page
    assert whole.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 20


def test_a_reply_that_cannot_be_read_counts_as_the_most_it_may_have_cost(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    loopback.answer = lambda _: Reply(body='{"choices": [')

    result = run_once(*in_500_tokens(model), "--upskill-max-cost", "0.001")

    assert result.ret == NOT_MEASURED
    assert len(loopback.requests) == 1
    result.assert_outcomes(errors=1, skipped=20)
    result.stdout.fnmatch_lines(
        [
            "*m: 127.0.0.1:* sent invalid JSON (*) (not retried: --upskill-max-cost: not *",
            "* stopped, as the next request could exceed $0.001, as requests of unknown cost are *",
        ]
    )


def test_broken_attempts_before_an_answer_count_too(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    loopback.replies.extend([Reply(body="{")] * 2)

    result = run_once(*in_500_tokens(model), "--upskill-max-cost", "0.01")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 22
    result.stdout.fnmatch_lines(["--upskill-max-cost: $0.00* assumed for requests of *"])


def test_a_refused_request_costs_nothing(run_once: Run, loopback: Loopback, model: str) -> None:
    loopback.replies.extend([Reply(status=503)] * 3)

    result = run_once(*in_500_tokens(model), "--upskill-max-cost", "0.0015")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("--upskill-max-cost: *")


def test_a_client_that_breaks_does_not_delay_the_others(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nupskill_prices = small = 1/1\n")
    pytester.makeconftest(
        """
        class Broken:
            async def complete(self, request):
                raise ValueError("a bug")
            async def aclose(self):
                pass

        def pytest_upskill_make_client(model, config):
            return Broken()
        """
    )

    result = pytester.run(
        forked_commands() / "pytest",
        *UNTESTED_PLUGINS, "--upskill-models=acme:small", "--upskill-max-cost=0.01", "skills",
        timeout=60,
    )  # fmt: skip

    result.assert_outcomes(errors=1, skipped=20)


def test_a_limit_needs_prices(run: Run, write_skill: WriteSkill, loopback: Loopback) -> None:
    write_skill()

    result = run(
        "--upskill-models", f"m=small@{loopback.openai_url}", "--upskill-max-cost", "1", "skills"
    )

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert loopback.requests == []
    text = result.stdout.str() + result.stderr.str()
    assert "--upskill-max-cost: no price is known for 'openai:small@127.0.0.1" in text
    assert 'upskill_prices = ["m = IN/OUT"] (in pytest.ini: m = IN/OUT, without' in text


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nupskill_prices = ["m = IN/OUT"]'),
        ("pytest.toml", '[pytest]\nupskill_prices = ["m = IN/OUT"]'),
        ("pytest.ini", "[pytest]\nupskill_prices = m = IN/OUT"),
    ],
)
def test_the_setting_in_the_message_of_a_missing_price_works_as_written(
    run: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    pytester: pytest.Pytester,
    name: str,
    setting: str,
) -> None:
    write_skill()
    (pytester.path / name).write_text(setting.replace("IN/OUT", "1/2"), "utf-8")
    models = f"--upskill-models=m=small@{loopback.openai_url}"

    result = run(models, "--upskill-max-cost=1", "--upskill-dry-run", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert "no price is known" not in result.stdout.str() + result.stderr.str()
