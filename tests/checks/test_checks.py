"""Checks of text, patterns and JSON schemas: what passes, and what the message says."""

from __future__ import annotations

import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.cpu_limit import call_untrusted
from pytest_upskill.checks.structure import JsonSchema, ValueAtPath
from pytest_upskill.checks.text import (
    Contains,
    ContainsAny,
    NotContains,
    NotRegex,
    Regex,
    TextCheck,
)

ANSWER = "Here is the function:\n\ndef clean(text):\n    return text.strip()\n"
SEEN = "the answer (64 characters; begins 'Here is the function:\\n\\ndef clean(text):…')"
CATASTROPHE = ("(a+)+$", "a" * 40 + "!")
STATUS = {"type": "object", "properties": {"status": {"type": "integer"}}, "required": ["id"]}


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_upskill.checks.cpu_limit._SECONDS", 0.1)


def failure(check: TextCheck, text: str) -> str:
    result = check.check(text)
    assert not result.passed
    assert result.name == check.name
    return result.message


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (Contains(text="STRIP("), "contains 'STRIP(': in the answer"),
        (Contains(text="\ndef "), r"contains '\ndef ': in the answer"),
        (NotContains(text="eval("), "not_contains 'eval(': not in the answer"),
        (ContainsAny(texts=("eval(", "Strip(")), "contains_any 'Strip(': in the answer"),
        (Regex(pattern=r"(?m)^def \w+"), r"regex '(?m)^def \w+': found"),
        (NotRegex(pattern="^def"), "not_regex '^def': not found"),
    ],
)
def test_a_check_that_holds_says_what_it_found(check: TextCheck, message: str) -> None:
    assert check.check(ANSWER) == CheckResult(name=check.name, passed=True, message=message)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (Contains(text="lstrip("), f"contains 'lstrip(': not in {SEEN}"),
        (NotContains(text="CLEAN"), "not_contains 'CLEAN': found in line 3: 'def clean(text):'"),
        (ContainsAny(texts=("a1", "b2")), f"contains_any 'a1', 'b2': none in {SEEN}"),
        (Regex(pattern="^def"), f"regex '^def': not found in {SEEN}"),
        (NotRegex(pattern="c.e"), "not_regex 'c.e': found in line 3: 'def clean(text):'"),
    ],
)  # fmt: skip
def test_a_check_that_fails_describes_the_answer(check: TextCheck, message: str) -> None:
    assert failure(check, ANSWER) == message


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_answer_is_called_empty(text: str) -> None:
    assert failure(Contains(text="a"), text) == ("contains 'a': not in the answer, which is empty")


@pytest.mark.parametrize(
    ("wanted", "text"), [("STRASSE", "straße"), ("ﬁle", "FILE"), ("Σίσυφος", "ΣΊΣΥΦΟΣ")]
)
def test_upper_and_lower_case_are_compared_as_unicode_says(wanted: str, text: str) -> None:
    assert Contains(text=wanted).check(text).passed
    assert not NotContains(text=wanted).check(text).passed
    assert ContainsAny(texts=("x", wanted)).check(text).passed


def test_a_long_line_is_shown_where_the_text_was_found() -> None:
    text = "first\n" + "x" * 500 + " secret " + "y" * 500

    message = failure(NotContains(text="Secret"), text)

    assert message == (f"not_contains 'Secret': found in line 2: '…{'x' * 19} secret {'y' * 31}…'")


@settings(max_examples=100, deadline=None)
@given(
    st.text(st.characters(), min_size=1, max_size=300),
    st.text(st.characters(), max_size=300),
    st.sampled_from(["contains", "not_contains", "contains_any", "schema"]),
)
def test_a_message_is_one_short_printable_line(wanted: str, text: str, kind: str) -> None:
    checks: dict[str, TextCheck] = {
        "contains": Contains(text=wanted),
        "not_contains": NotContains(text=wanted),
        "contains_any": ContainsAny(texts=(wanted,)),
        "schema": JsonSchema(schema={"const": wanted}),
    }

    for answer in (text, text + wanted + text):
        message = checks[kind].check(answer).message

        assert message.isprintable()
        assert len(message) <= 200


@pytest.mark.parametrize(
    "answer",
    [
        '{"id": 1, "status": 2}',
        'Sure:\n\n```json\n{"id": 1}\n```\n',
        '```\n{"id": 1}\n```',
        'Short:\n```json\n{}\n```\nWhole:\n```json\n{"id": 1}\n```',
    ],
    ids=["the whole answer", "a json block", "an unlabelled block", "the longest json block"],
)
def test_valid_json_is_found_in_an_answer(answer: str) -> None:
    assert JsonSchema(schema=STATUS).check(answer) == CheckResult(
        name="json_schema", passed=True, message="json_schema: valid"
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('{"id": 1, "status": "open"}', "$.status: 'open' is not of type 'integer'"),
        ("[]", "$: [] is not of type 'object'"),
        ("Sorry, no.", "no JSON in the answer (blocks: none)"),
        ("```python\n1\n```\n\n```\nx\n```", "no JSON in the answer (blocks: python, unlabelled)"),
        ("Hi\n```json\n{'a': 1}\n```",
         "invalid JSON in line 3 of the answer: Expecting property name enclosed in double quotes"),
        ("```json\n[NaN]\n```", "invalid JSON in line 2 of the answer: JSON has no NaN"),
    ],
)  # fmt: skip
def test_json_that_breaks_the_schema_is_shown_with_its_path(answer: str, message: str) -> None:
    assert failure(JsonSchema(schema=STATUS), answer) == f"json_schema: {message}"


def test_every_breach_of_the_schema_is_in_the_detail() -> None:
    result = JsonSchema(schema=STATUS).check('{"status": "open"}')

    assert result.message == "json_schema: $: 'id' is a required property (1 more)"
    assert result.detail == (
        "$: 'id' is a required property\n$.status: 'open' is not of type 'integer'"
    )


@pytest.mark.parametrize("answer", ["[" * 100_000, f"[{'9' * 5000}]"])
def test_json_that_python_cannot_hold_is_not_json(answer: str) -> None:
    assert failure(JsonSchema(schema=STATUS), answer) == (
        "json_schema: no JSON in the answer (blocks: none)"
    )


def test_a_schema_without_end_cannot_be_decided() -> None:
    with pytest.raises(CheckError, match="refers to itself"):
        JsonSchema(schema={"$ref": "#"}).check("1")


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("kind", [Regex, NotRegex])
def test_a_catastrophic_pattern_cannot_be_decided(kind: type[Regex | NotRegex]) -> None:
    pattern, text = CATASTROPHE

    with pytest.raises(CheckError) as caught:
        kind(pattern=pattern).check(text)

    assert str(caught.value) == f"{kind.name} '(a+)+$' took over 0.1 s: simplify it"


@pytest.mark.usefixtures("_impatient")
def test_a_pattern_in_a_schema_is_limited_too() -> None:
    pattern, text = CATASTROPHE

    with pytest.raises(CheckError, match="json_schema took over"):
        JsonSchema(schema={"pattern": pattern}).check(f'"{text}"')


def test_a_search_leaves_the_signals_as_they_were() -> None:
    def handler(_signal: int, _frame: Any) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGVTALRM, handler)
    try:
        assert Regex(pattern="a").check("a").passed

        assert signal.getsignal(signal.SIGVTALRM) is handler
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_a_time_limit_that_code_ignores_is_raised_again() -> None:
    def stubborn() -> None:
        with suppress(TimeoutError):
            while True:
                pass
        while True:
            pass

    with pytest.raises(CheckError, match="it took over"):
        call_untrusted("it", stubborn)


@pytest.mark.usefixtures("_impatient")
def test_another_thread_decides_the_same() -> None:
    pattern, text = CATASTROPHE

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(Regex(pattern="d.f").check, ANSWER).result()
        missed = pool.submit(Regex(pattern="zzz").check, ANSWER).result()
        undecided = pool.submit(Regex(pattern=pattern).check, text).exception()

    assert (found.passed, missed.passed) == (True, False)
    assert isinstance(undecided, CheckError)


def test_another_thread_gets_the_same_error() -> None:
    check = ValueAtPath(name="json", path="a", value=1)
    endless = JsonSchema(schema={"$ref": "#"})

    with ThreadPoolExecutor(1) as pool:
        missed = pool.submit(check.check, "No data.").result()
        undecided = pool.submit(endless.check, "{}").exception()

    assert missed == check.check("No data.")
    assert isinstance(undecided, CheckError)


def test_a_pattern_that_python_warns_of_is_searched_quietly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert Regex(pattern="[[a]").check("[").passed


def test_an_answer_is_searched_up_to_a_limit() -> None:
    assert not Regex(pattern="b").check("a" * (1 << 20) + "b").passed
