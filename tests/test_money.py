from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

# Imported before the first inner run: pytester drops what a run imported, and SDKs take a second.
import genai_prices  # noqa: F401
import pytest

import pytest_upskill.providers.anthropic
import pytest_upskill.providers.openai  # noqa: F401
from pytest_upskill.budget import Budget
from pytest_upskill.completion import Completion, Request
from pytest_upskill.ledger import NOT_MEASURED
from pytest_upskill.models import parse_model
from pytest_upskill.prices import OwnPrice, Prices
from tests import junit
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

CASES = [
    {"id": f"case-{number}", "input": f"{QUESTION} ({number})", "expected": {"contains": "37"}}
    for number in range(10)
]
ANSWER = Completion(text="", input_tokens=1_000_000, output_tokens=100_000)


def know(received: Received) -> Reply:
    return Reply(text="37" if "37" in received.system else "No idea.")


@pytest.fixture
def model(loopback: Loopback, pytester: pytest.Pytester) -> str:
    """Serve a model at a dollar for a million tokens; an answer comes to $0.000018."""
    loopback.answer = know
    pytester.makeini("[pytest]\nupskill_prices = m = 1/1\n")
    return f"m=openai:small@{loopback.openai_url}"


def test_tokens_of_every_kind_have_their_own_price() -> None:
    haiku = parse_model("haiku")
    plain = replace(ANSWER, input_tokens=10_000, output_tokens=1000)
    cached = replace(plain, cache_read_tokens=8000, cache_write_tokens=1000)

    assert Prices({}).cost(haiku, plain) == pytest.approx((10_000 * 0.1 + 1000 * 0.5) / 1e6)
    assert Prices({}).cost(haiku, cached) == pytest.approx(
        (1000 * 0.1 + 8000 * 0.01 + 1000 * 0.125 + 1000 * 0.5) / 1e6
    )


def test_a_long_prompt_has_the_price_of_its_tier() -> None:
    long = replace(ANSWER, input_tokens=200_000, output_tokens=1000)

    cost = Prices({}).cost(parse_model("haiku"), long)

    assert cost == pytest.approx((200_000 * 0.5 + 1000 * 2.5) / 1e6)


@pytest.mark.parametrize(
    "model",
    [
        "haiku@http://127.0.0.1:8080",
        "openai:gpt-nobody-knows",
        "acme:small",
        "gpt-6-luna@http://127.0.0.1:8080/v1",
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model: str) -> None:
    assert Prices({}).cost(parse_model(model), ANSWER) is None


def test_answers_without_token_counts_have_no_price() -> None:
    uncounted = replace(ANSWER, input_tokens=None)

    assert Prices({}).cost(parse_model("haiku"), uncounted) is None


def test_counts_that_contradict_each_other_have_no_price() -> None:
    wrong = replace(ANSWER, input_tokens=10, cache_read_tokens=20)

    assert Prices({}).cost(parse_model("haiku"), wrong) is None


def test_an_own_price_comes_before_the_listed_one() -> None:
    prices = Prices({"haiku": OwnPrice(input=3, output=10)})

    assert prices.cost(parse_model("haiku"), ANSWER) == pytest.approx(3 + 1)


def test_offline_is_free() -> None:
    assert Prices({}).cost(parse_model("offline"), ANSWER) == 0.0


@pytest.mark.parametrize("text", ["\u4e16\u754c" * 100, "\U0001f600" * 100, "word " * 100])
def test_the_bound_of_a_request_holds_for_any_tokenizer_and_for_writing_the_cache(
    text: str,
) -> None:
    request = Request(
        model=parse_model("haiku"), frame="", skill="", user=text, max_tokens=50, run=0
    )
    tokens = len(text.encode())
    worst = replace(ANSWER, input_tokens=tokens, cache_write_tokens=tokens, output_tokens=50)
    prices = Prices({})

    most, cost = prices.most(request), prices.cost(request.model, worst)

    assert most is not None
    assert cost is not None
    assert cost < most < 1.5 * cost


def test_a_request_that_would_not_fit_waits_for_others_to_settle() -> None:
    async def spend() -> list[bool]:
        budget = Budget(1.0)
        going = [await budget.reserve(0.6)]
        waiting = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(0)
        going.append(waiting.done())
        await budget.settle(0.6, 0.1)
        going.append(await waiting)
        await budget.settle(0.6, 0.1)
        return going

    assert asyncio.run(spend()) == [True, False, True]


def test_an_answer_of_unknown_cost_counts_as_the_most() -> None:
    async def spend() -> bool:
        budget = Budget(1.0)
        await budget.reserve(0.6)
        await budget.settle(0.6, None)
        return await budget.reserve(0.6)

    assert asyncio.run(spend()) is False


def test_once_a_request_had_to_stay_all_stay() -> None:
    async def spend() -> list[bool]:
        budget = Budget(1.0)
        return [await budget.reserve(2.0), await budget.reserve(0.1)]

    assert asyncio.run(spend()) == [False, False]


def test_the_plan_says_how_much_there_is_to_ask(
    run: Run, write_skill: WriteSkill, model: str, pytester: pytest.Pytester
) -> None:
    write_skill(*CASES[:2])
    run("--upskill-models", model, "skills")

    result = run("--upskill-models", model, "--upskill-runs", "3", "skills")

    result.stdout.re_match_lines(
        [
            r"upskill: 4 trials, 12 answers: 4 recorded, 8 to ask for, at most [\d,]+ tokens in, ",
        ]
    )
    assert "asked for 8 answers: $0.0001; replayed 4 answers" in result.stdout.str()
    assert (pytester.path / ".upskill").exists()


def test_a_dry_run_needs_no_key_and_sends_nothing(
    run: Run, write_skill: WriteSkill, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    write_skill(*CASES[:2])

    result = run("--upskill-models", "haiku,sonnet", "--upskill-dry-run", "-q", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert loopback.requests == []
    result.assert_outcomes()
    result.stdout.re_match_lines(
        [
            r"upskill: 8 trials, 8 answers: 0 recorded, 8 to ask for, at most .* 65,536 out, \$",
            r"  haiku: 4 to ask for, at most [\d,]+ tokens in, 32,768 out, \$0\.0\d{3}$",
            r"  sonnet: 4 to ask for, at most [\d,]+ tokens in, 32,768 out, \$0\.3\d{3}$",
        ],
        consecutive=True,
    )


def test_a_plan_without_all_prices_says_so(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill()

    result = run_once(
        "--upskill-models", f"haiku,m=small@{loopback.openai_url}", "--upskill-dry-run", "skills"
    )

    result.stdout.fnmatch_lines(["upskill: 4 trials, *, cost n/a", "  haiku: *$0.0*", "  m: *n/a"])


def test_the_limit_stops_before_it_could_be_passed_and_keeps_what_was_paid_for(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES)
    limit, answer = 0.001, 0.000018
    args = ("--upskill-models", model, "--upskill-max-tokens", "500", "-rs", "skills")

    result = run(*args, "--upskill-max-cost", str(limit))
    sent = len(loopback.requests)
    whole = run(*args)

    assert result.ret == NOT_MEASURED
    assert 0 < sent < 20
    assert (sent - 1) * answer + 500e-6 <= limit
    result.assert_outcomes(passed=sent, skipped=20 - sent + 1)
    result.stdout.fnmatch_lines(
        [
            "exit code 75: *",
            "--upskill-max-cost: stopped before $0.001 could be passed",
            "SKIPPED * --upskill-max-cost: $0.001 could be passed by asking this",
        ]
    )
    assert whole.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 20


def test_a_limit_under_one_answer_asks_nothing(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()

    result = run_once("--upskill-models", model, "--upskill-max-cost", "0.00001", "skills")

    assert result.ret == NOT_MEASURED
    assert loopback.requests == []


def test_a_limit_that_is_not_reached_changes_nothing(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill(*CASES)

    result = run_once("--upskill-models", model, "--upskill-max-cost", "0.02", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=21)


def test_a_failed_case_is_red_whatever_the_limit(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES)
    loopback.answer = lambda _: Reply(text="No idea.")

    result = run_once(
        "--upskill-models", model, "--upskill-max-tokens", "500", "--upskill-max-cost", "0.001",
        "skills",
    )  # fmt: skip

    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_client_that_breaks_holds_nobody_up(
    write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill(*CASES)
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

    result = pytester.runpytest_subprocess(
        "-p", "no:anyio", "-p", "no:hypothesispytest", "--upskill-models", "acme:small",
        "--upskill-max-cost", "0.01", "skills", timeout=60,
    )  # fmt: skip

    result.assert_outcomes(errors=20)


def test_a_limit_needs_prices(run: Run, write_skill: WriteSkill, loopback: Loopback) -> None:
    write_skill()

    result = run(
        "--upskill-models", f"m=small@{loopback.openai_url}", "--upskill-max-cost", "1", "skills"
    )

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert loopback.requests == []
    text = result.stdout.str() + result.stderr.str()
    assert "--upskill-max-cost: no price is known for 'openai:small@127.0.0.1" in text
    assert "upskill_prices = 'm = IN/OUT'" in text


@pytest.mark.parametrize(
    ("option", "text"), [("--upskill-max-cost=0", "more than 0"), ("", "bad line 'm: 1'")]
)
def test_unusable_prices_and_limits_are_refused_in_one_line(
    run_once: Run, pytester: pytest.Pytester, option: str, text: str
) -> None:
    if not option:
        pytester.makeini("[pytest]\nupskill_prices = m: 1\n")

    result = run_once("--upskill-models", "offline", *filter(None, [option]))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = (line for line in result.errlines if line)
    assert text in line


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        (
            "haiku",
            {
                "input_tokens": 100,
                "cache_read_input_tokens": 3000,
                "cache_creation_input_tokens": 200,
                "output_tokens": 50,
            },
            "0.000090",
        ),
        (
            "gpt-6-luna",
            {
                "prompt_tokens": 3300,
                "completion_tokens": 50,
                "total_tokens": 3350,
                "prompt_tokens_details": {"cached_tokens": 3000},
            },
            "0.000085",
        ),
    ],
)
def test_cached_tokens_are_counted_once_and_priced_as_cached(  # noqa: PLR0917  fixtures
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
    model: str,
    usage: dict[str, Any],
    dollars: str,
) -> None:
    for vendor, url in (("ANTHROPIC", loopback.url), ("OPENAI", loopback.openai_url)):
        monkeypatch.setenv(f"{vendor}_BASE_URL", url)
        monkeypatch.setenv(f"{vendor}_API_KEY", "a-key")
    loopback.answer = lambda received: replace(know(received), usage=usage)
    write_skill()

    run_once("--upskill-models", model, "--junitxml", "out.xml", "skills")

    file = Path(pytester.path, "out.xml")
    trial = junit.properties(junit.cases_of(file)[f"budget[{model}-with_skill]"])
    assert trial["upskill.tokens.in"] == "3300"
    assert trial["upskill.cost_usd"] == dollars
    gate = junit.properties(junit.cases_of(file)[f"gate[{model}]"])
    assert gate["upskill.cost_usd.with"] == gate["upskill.cost_usd.without"] == dollars
