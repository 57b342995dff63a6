"""The judge, a model that decides statements about answers: its request, and parsing its reply.

The judge sees question, statements and answer, but not which model or arm the answer is from. A
statement holds only if the judge quotes evidence that occurs in the answer.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from json import JSONDecoder
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.judge import INSTRUCTIONS, MESSAGE, REFERENCE, UNUSABLE, Judge
from pytest_upskill.checks.text import cut, quoted
from pytest_upskill.models import Completion, Model, Request
from pytest_upskill.project.digest import digest_of

MAX_TOKENS = 4096
"""Maximum output tokens of a judgement."""

_ESCAPED_CHARACTER = re.compile(r"\\+u([0-9a-fA-F]{4})")
_ESCAPED_BLANK = re.compile(r"\\+[bfnrt]")
_MAX_SHOWN = 80


Decisions = tuple[CheckResult | str, ...]
"""What a judge decided of each statement: a result, or why the answer cannot show it."""


class _Verdict(BaseModel, strict=True, defer_build=True):
    statement: int
    quote: str
    reason: str = ""
    holds: bool | Literal["cannot be decided"]


class _Judgement(BaseModel, strict=True, defer_build=True):
    verdicts: list[_Verdict]


def judge_request(model: Model, case: Case, *, question: str, answer: str) -> Request:
    """Return the request to the judge about one answer.

    Args:
        model: The judge.
        case: Has the statements that must hold, and perhaps an answer that is known to be right.
        question: What the model was asked.
        answer: Text of the answer; untrusted.
    """
    reference, statements = case.reference, case.judge_checks
    # A text cannot contain its own digest, so it cannot contain its own closing mark.
    user = MESSAGE.format(
        question=question,
        question_mark=digest_of(question),
        reference=reference
        and REFERENCE.format(reference=reference, reference_mark=digest_of(reference)),
        answer=answer,
        answer_mark=digest_of(answer),
        statements="\n".join(f"{n}. {each.statement}" for n, each in enumerate(statements, 1)),
    )
    return Request(
        model=model,
        frame=INSTRUCTIONS,
        skill="",
        user=user,
        max_tokens=model.parameters.max_tokens or MAX_TOKENS,
        run=0,
    )


def read_judgement(judgement: Completion, statements: Sequence[Judge], answer: str) -> Decisions:
    """Parse the judge's reply and return what it decided of each statement.

    Args:
        judgement: Reply of the judge.
        statements: Statements in the order of the request.
        answer: Text of the answer, in which the quotes must occur.

    Raises:
        CheckError: The reply is not one judgement of these statements, or the answer does not
            contain its evidence.
    """
    if judgement.stop_reason != "end":
        raise _unusable(judgement, f"it stopped at {judgement.stop_reason}")
    verdicts = _verdicts_of(judgement, answer)
    numbers = [verdict.statement for verdict in verdicts]
    if numbers != list(range(1, len(statements) + 1)):
        raise _unusable(judgement, f"it has statements {numbers}, not 1 to {len(statements)}")
    return tuple(
        _decision(verdict, statement.statement, answer)
        for verdict, statement in zip(verdicts, statements, strict=True)
    )


def _unusable(judgement: Completion, why: str) -> CheckError:
    """Return the error for an unusable reply, with an excerpt of it."""
    text = quoted(" ".join(judgement.text.split()), 240)
    excerpt = f"the judge said {text}" if judgement.text.strip() else "the judge said nothing"
    return CheckError(f"{UNUSABLE}{why}; {excerpt}")


def _decision(verdict: _Verdict, statement: str, answer: str) -> CheckResult | str:
    if isinstance(verdict.holds, str):
        return " ".join(verdict.reason.split())
    quote, named = " ".join(verdict.quote.split()), quoted(statement, _MAX_SHOWN)
    if not occurs(verdict.quote, answer):
        raise CheckError(f"{UNUSABLE}the quote {quoted(quote, _MAX_SHOWN)} is not in the answer")
    if verdict.holds and not proves(verdict.quote, answer):
        raise CheckError(f"{UNUSABLE}no evidence for {named}: the quote is {quote!r}")
    shown, reason = cut(quote, _MAX_SHOWN), cut(verdict.reason, _MAX_SHOWN)
    outcome = f'holds: "{shown}"' if verdict.holds else f"does not hold: {reason}"
    return CheckResult(
        name=Judge.name,
        passed=verdict.holds,
        message=f"judge {named}: {outcome}",
        detail="\n".join(filter(None, (f"evidence: {quote}" if quote else "", verdict.reason))),
    )


def _verdicts_of(judgement: Completion, answer: str) -> list[_Verdict]:
    """Return the judgement in a reply, which may stand between other text, or more than once.

    What the judge copied from the answer is none, whoever wrote it there.

    Raises:
        CheckError: The reply contains no judgement, several that disagree, or one with a key twice.
    """
    found, problem = [], ""
    objects = list(_json_objects(judgement.text))
    copied = _copied(objects, answer)
    for each in objects:
        if any(each.start <= copy.start < each.start + len(each.text) for copy in copied):
            continue
        try:
            found.append(_Judgement.model_validate(each.value).verdicts)
        except ValidationError as error:
            problem = problem or _error_text(error)
            continue
        if each.repeats_key:
            raise _unusable(judgement, "it has a key twice")
    if not found:
        if copied:
            problem = "its only judgement is copied from the answer"
        raise _unusable(judgement, problem or "it has no JSON object")
    decided = [[(verdict.statement, verdict.holds) for verdict in each] for each in found]
    if any(each != decided[0] for each in decided):
        raise _unusable(judgement, "it has several judgements, which disagree")
    return found[-1]


class _JsonObject(NamedTuple):
    """A JSON object somewhere in a text."""

    value: Any
    start: int
    text: str
    repeats_key: bool
    """Whether it, or an object in it, has a key twice."""


def _json_objects(text: str) -> Iterator[_JsonObject]:
    """Yield the objects in a text, each before those that are in it."""
    repeats = 0

    def read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        value = dict(pairs)
        repeats += len(value) < len(pairs)
        return value

    decoder = JSONDecoder(object_pairs_hook=read_pairs)
    # Not every brace of a long reply is tried as the start of JSON.
    for brace in islice(re.finditer("{", text), 1000):
        start, before = brace.start(), repeats
        with suppress(ValueError, RecursionError):
            value, end = decoder.raw_decode(text, start)
            yield _JsonObject(value, start, text[start:end], repeats > before)


def _copied(objects: Sequence[_JsonObject], answer: str) -> list[_JsonObject]:
    """Return the judgements, and parts of them, that stand in an answer, however they are written.

    Args:
        objects: The objects of a reply.
        answer: Text of the answer.
    """
    letters, parts = _letters(answer), {_fields(each) for each in _json_objects(answer)}
    return [
        each
        for each in objects
        if ("holds" in each.value and _fields(each) in parts)
        or (
            not each.value.keys().isdisjoint(("holds", "verdicts"))
            and _letters(each.text) in letters
        )
    ]


def _fields(part: _JsonObject) -> frozenset[tuple[str, str]]:
    """Return the fields of an object in any order, but for those that are objects or lists."""
    return frozenset(
        (_letters(key), _letters(str(value)))
        for key, value in part.value.items()
        if not isinstance(value, (dict, list))
    )


def _letters(text: str) -> str:
    """Return the letters and digits of a text, without what escaping and layout add."""
    text = _ESCAPED_CHARACTER.sub(lambda match: chr(int(match[1], 16)), html.unescape(text))
    text = unicodedata.normalize("NFKC", _ESCAPED_BLANK.sub("", text)).casefold()
    return "".join(filter(str.isalnum, text))


def _error_text(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


# Quotes, despite what copying loses

MIN_QUOTE = 8
"""Minimum number of characters of evidence, or of a piece of it."""

_QUOTES = "\"'`´‘’‚‛“”„‟′″‹›«»「」"  # noqa: RUF001  the characters to fold
_DASHES = "-‐‑‒–—―−"  # noqa: RUF001
_FOLDED = str.maketrans(
    dict.fromkeys(_QUOTES, "'") | dict.fromkeys(_DASHES, "-") | dict.fromkeys("*_~|`", "")
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]|[-+*•][ \t])?", re.MULTILINE)
_NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_LONE_DASHES = re.compile(r"(?<!\S)-+(?!\S)")
_ELLIPSIS = re.compile(r"\[?(?:…|\.{3,})\]?")
_EDGES = " .,;:!?'…"
"""Characters, once folded, at the ends of a quote that prove nothing."""
_AROUND = f" \n\t.…{_QUOTES}"


def occurs(quote: str, answer: str) -> bool:
    """Return whether the answer contains a quote; an empty one always is.

    Markdown, case, quotation marks, dashes and blanks do not count. A quote may leave parts out
    with ``…``; its pieces of at least ``MIN_QUOTE`` characters then occur in their order.
    """
    # Before folding: what a copy puts around hides marks that count at the start of a line only.
    quote = quote.strip(_AROUND)
    return _contains(fold(answer), fold(quote))


def proves(quote: str, answer: str) -> bool:
    """Return whether a quote is long enough to be evidence: a short answer is so as a whole."""
    return len(fold(quote).strip(_EDGES)) >= min(MIN_QUOTE, len(fold(answer).strip(_EDGES)))


def fold(text: str) -> str:
    """Return a text on one line, without the markup and spaces that a copy may lose."""
    text = unicodedata.normalize("NFC", text)
    text = _NUMBER.sub("", _LINE_MARK.sub("", _LINK.sub(r"\1", text)))
    text = _ESCAPE.sub("", text).translate(_FOLDED).casefold()
    return " ".join(_LONE_DASHES.sub(" ", text).split())


def _contains(answer: str, quote: str) -> bool:
    if quote.strip(_EDGES) in answer:
        return True
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := part.strip(_EDGES))]
    start = 0
    for piece in pieces:
        start = answer.find(piece, start) + len(piece)
        if len(piece) < MIN_QUOTE or start < len(piece):
            return False
    return bool(pieces)
