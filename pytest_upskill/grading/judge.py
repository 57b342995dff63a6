"""The judge, a model that decides statements about answers: its request, and parsing its reply.

The judge sees question, statements and answer, but not which model or arm the answer is from. A
statement holds only if the judge quotes evidence that occurs in the answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from json import JSONDecoder

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_upskill.checks import CheckError, CheckResult, Judge
from pytest_upskill.checks.judge import INSTRUCTIONS, MESSAGE, NO_EVIDENCE, REFERENCE, UNUSABLE
from pytest_upskill.checks.result import quoted
from pytest_upskill.completion import Completion, Request
from pytest_upskill.grading.quotes import occurs, proves
from pytest_upskill.model import Model

MAX_TOKENS = 4096
"""Maximum output tokens of a judgement."""

_MISQUOTED, _UNPROVED = NO_EVIDENCE
_MOST_TRIES = 1000
"""Maximum number of braces in a reply that are tried as the start of JSON."""
_MAX_SHOWN = 80
_MAX_REPLY = 240
"""Maximum characters of an unusable reply in an error message."""


class _Verdict(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    statement: int
    quote: str
    reason: str = ""
    holds: bool


class _Judgement(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    verdicts: list[_Verdict]


def judge_request(
    model: Model, statements: Sequence[Judge], *, question: str, answer: str, reference: str = ""
) -> Request:
    """Return the request to the judge about one answer.

    Args:
        model: The judge.
        statements: Statements that must hold for the answer.
        question: Input of the case.
        answer: Text of the answer; untrusted.
        reference: An answer that is known to be right; empty for none.
    """
    # A text cannot contain its own digest, so it cannot contain its own closing mark.
    user = MESSAGE.format(
        question=question,
        question_mark=_digest(question),
        reference=reference
        and REFERENCE.format(reference=reference, reference_mark=_digest(reference)),
        answer=answer,
        answer_mark=_digest(answer),
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


class Reader:
    """Reads the judge's replies about one answer, each once.

    Args:
        statements: Statements in the order of the request.
        answer: Text of the answer, in which the quotes must occur.
    """

    def __init__(self, statements: Sequence[Judge], answer: str) -> None:
        self._statements = statements
        self._answer = answer
        self._read: dict[tuple[str, str], tuple[CheckResult, ...] | CheckError] = {}

    def results(self, reply: Completion) -> tuple[CheckResult, ...]:
        """Return a result for each statement.

        Raises:
            CheckError: As ``read_judgement``.
        """
        key = reply.text, reply.stop_reason
        if key not in self._read:
            try:
                self._read[key] = read_judgement(reply, self._statements, self._answer)
            except CheckError as error:
                self._read[key] = error
        result = self._read[key]
        if isinstance(result, CheckError):
            raise result
        return result

    def usable(self, reply: Completion) -> bool:
        """Return whether a reply is a judgement."""
        try:
            return bool(self.results(reply))
        except CheckError:
            return False


def read_judgement(
    judgement: Completion, statements: Sequence[Judge], answer: str
) -> tuple[CheckResult, ...]:
    """Parse the judge's reply and return a result for each statement.

    Args:
        judgement: Reply of the judge.
        statements: Statements in the order of the request.
        answer: Text of the answer, in which the quotes must occur.

    Raises:
        CheckError: The reply is not a judgement of these statements, or the answer does not
            contain its evidence.
    """
    if judgement.stop_reason != "end":
        raise _unusable(judgement, f"it stopped at {judgement.stop_reason}")
    verdicts = _verdicts_of(judgement)
    numbers = [verdict.statement for verdict in verdicts]
    if numbers != list(range(1, len(statements) + 1)):
        raise _unusable(judgement, f"it has statements {numbers}, not 1 to {len(statements)}")
    return tuple(
        _result(verdict, statement.statement, answer)
        for verdict, statement in zip(verdicts, statements, strict=True)
    )


def _unusable(judgement: Completion, why: str) -> CheckError:
    """Return the error for an unusable reply, with an excerpt of it."""
    text = quoted(" ".join(judgement.text.split()), _MAX_REPLY)
    excerpt = f"the judge said {text}" if judgement.text.strip() else "the judge said nothing"
    return CheckError(f"{UNUSABLE}{why}; {excerpt}")


def _result(verdict: _Verdict, statement: str, answer: str) -> CheckResult:
    quote = " ".join(verdict.quote.split())
    if not occurs(verdict.quote, answer):
        raise CheckError(f"{UNUSABLE}{_MISQUOTED}{_cut(quote)!r} is not in the answer")
    if verdict.holds and not proves(verdict.quote, answer):
        raise CheckError(f"{UNUSABLE}{_UNPROVED}{_cut(statement)!r}: the quote is {quote!r}")
    outcome = (
        f'holds: "{_cut(quote)}"' if verdict.holds else f"does not hold: {_cut(verdict.reason)}"
    )
    return CheckResult(
        name=Judge.name,
        passed=verdict.holds,
        message=f"judge {_cut(statement)!r}: {outcome}".replace("\n", " "),
        detail="\n".join(filter(None, (f"evidence: {quote}" if quote else "", verdict.reason))),
    )


def _verdicts_of(judgement: Completion) -> list[_Verdict]:
    """Return the last judgement in a reply, which may contain text or drafts before it.

    Raises:
        CheckError: The reply contains no judgement.
    """
    last, problem, text = None, "", judgement.text
    decoder = JSONDecoder()
    start, tries = text.find("{"), 0
    while start >= 0 and tries < _MOST_TRIES:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, start)
            last = _Judgement.model_validate(value)
        except ValidationError as error:
            problem = problem or _error_text(error)
            end = start + 1
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
    if last is None:
        raise _unusable(judgement, problem or "it has no JSON object")
    return last.verdicts


def _error_text(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
