"""What an answer costs, and the most that a request can cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.answers.prices import OwnPrice, Prices, max_input_tokens
from pytest_upskill.models import Completion, Request, parse_model
from tests import junit
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, know

ANSWER = Completion(text="", input_tokens=1_000_000, output_tokens=100_000)


def test_tokens_of_every_kind_have_their_own_price() -> None:
    haiku = parse_model("haiku")
    plain = replace(ANSWER, input_tokens=10_000, output_tokens=1000)
    cached = replace(plain, cache_read_tokens=8000, cache_write_tokens=1000)

    assert Prices({}).cost(haiku, plain) == pytest.approx((10_000 * 0.1 + 1000 * 0.5) / 1e6)
    assert Prices({}).cost(haiku, cached) == pytest.approx(
        (1000 * 0.1 + 8000 * 0.01 + 1000 * 0.125 + 1000 * 0.5) / 1e6
    )


def test_a_prompt_may_have_more_tokens_than_bytes_as_an_api_wraps_it() -> None:
    asked = Request(
        model=parse_model("haiku"), frame="Frame.", skill="", user="Grüße", max_tokens=1, run=0
    )

    assert max_input_tokens(asked) > len("Frame.Grüße".encode())


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
        "gpt-6-luna@https://models.example.org/v1",
        "gpt-6-luna@http://api.openai.com/v1",
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model: str) -> None:
    assert Prices({}).cost(parse_model(model), ANSWER) is None


@pytest.mark.parametrize(
    ("written_out", "name"),
    [
        ("anthropic:claude-haiku-5-5@https://api.anthropic.com", "haiku"),
        ("claude-haiku-5-5@https://api.anthropic.com/v1", "haiku"),
        ("gpt-6-luna@https://api.openai.com/v1", "gpt-6-luna"),
    ],
)
def test_a_vendors_url_written_out_has_the_vendors_price(written_out: str, name: str) -> None:
    cost = Prices({}).cost(parse_model(written_out), ANSWER)

    assert cost is not None
    assert cost == Prices({}).cost(parse_model(name), ANSWER)


def test_answers_without_token_counts_have_no_price() -> None:
    uncounted = replace(ANSWER, input_tokens=None)

    assert Prices({}).cost(parse_model("haiku"), uncounted) is None


def test_counts_that_contradict_each_other_have_no_price() -> None:
    wrong = replace(ANSWER, input_tokens=10, cache_read_tokens=20)

    assert Prices({}).cost(parse_model("haiku"), wrong) is None
    assert Prices({"haiku": OwnPrice(input=1, output=1)}).cost(parse_model("haiku"), wrong) is None


def test_an_own_price_comes_before_the_listed_one() -> None:
    prices = Prices({"haiku": OwnPrice(input=3, output=10)})
    cached = replace(ANSWER, cache_read_tokens=500_000)

    assert prices.cost(parse_model("haiku"), ANSWER) == pytest.approx(3 + 1)
    assert prices.cost(parse_model("haiku"), cached) == pytest.approx(3 + 1)


@pytest.mark.parametrize(("spec", "factor"), [("haiku", 1.25), ("haiku=openai:x", 1)])
def test_an_own_price_includes_what_writing_the_prompt_cache_costs(
    spec: str, factor: float
) -> None:
    model = parse_model(spec)
    prices = Prices({model.label: OwnPrice(input=3, output=10)})
    request = Request(model=model, frame="", skill="", user="x" * 36, max_tokens=0, run=0)

    written = replace(ANSWER, output_tokens=0, cache_write_tokens=1_000_000)

    assert prices.cost(model, written) == pytest.approx(3 * factor)
    assert prices.max_cost(request) == pytest.approx(3 * factor * 100 / 1e6)


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

    most, cost = prices.max_cost(request), prices.cost(request.model, worst)

    assert most is not None
    assert cost is not None
    assert cost < most < 1.5 * cost


def test_cached_tokens_are_counted_once_and_priced_as_cached(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
) -> None:
    for vendor, url in (("ANTHROPIC", loopback.url), ("OPENAI", loopback.openai_url)):
        monkeypatch.setenv(f"{vendor}_BASE_URL", url)
        monkeypatch.setenv(f"{vendor}_API_KEY", "a-key")
    pytester.makeini("[pytest]\nupskill_prices = own = 5/25 cached 0.5\n")
    dollars = {"haiku": "0.00009", "gpt-6-luna": "0.000085", "own": "0.00425"}
    anthropic = {"input_tokens": 100, "cache_read_input_tokens": 3000, "output_tokens": 50}
    anthropic["cache_creation_input_tokens"] = 200
    openai = {"prompt_tokens": 3300, "completion_tokens": 50}
    usage = {**anthropic, **openai, "prompt_tokens_details": {"cached_tokens": 3000}}
    loopback.answer = lambda received: replace(know(received), usage=usage)
    write_skill()

    models = f"haiku,gpt-6-luna,own=openai:x@{loopback.openai_url}"
    run_once("--upskill-models", models, "--junitxml", "out.xml", "skills")

    cases = junit.cases_of(Path("out.xml"))
    for model, cost in dollars.items():
        trial = junit.properties(cases[f"budget[{model}-with_skill]"])
        assert (trial["upskill.tokens.in"], trial["upskill.cost_usd"]) == ("3300", cost)
        gate = junit.properties(cases[f"gate[{model}]"])
        assert gate["upskill.cost_usd.with"] == gate["upskill.cost_usd.without"] == cost
