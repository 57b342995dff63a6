"""Cases that were skipped, with the reasons in one line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_upskill.project.messages import counted

NO_JUDGE = "only has statements for a judge; add --upskill-judge MODEL"
"""Why a case without checks by code is skipped if there is no judge."""

UNDECIDABLE = "its judge cannot decide any of its statements from an answer; use an agent"
"""Why a case is skipped after it was answered."""

_QUOTED = re.compile(r"'[^']*'")
_MOST_REASONS = 3
"""Maximum number of reasons in one line."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SkippedCase:
    """A skipped case, for which no request was sent."""

    case: str
    reason: str
    """Reason for skipping, one line."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unmeasured:
    """A skill on a model with every trial skipped."""

    path: str
    """Path of the case file from the rootdir."""
    skill: str
    model: str
    """Label of the model."""
    cases: tuple[SkippedCase, ...] = ()
    """Every case with the reason for skipping it."""

    def __str__(self) -> str:
        text = f"{self.skill} on {self.model}: not measured, as every case was skipped"
        reasons = skip_reasons(skipped.reason for skipped in self.cases)
        return f"{text}: {reasons}" if reasons else text


def skip_reasons(reasons: Iterable[str]) -> str:
    """Return the most frequent reasons in one line, such as ``3 cases: needs gcc``.

    Reasons that differ only in quoted parts are counted together.

    Args:
        reasons: One for each skipped case.
    """
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for reason in reasons:
        alike[_QUOTED.sub("", reason)].append(reason)
    groups = sorted(alike.values(), key=len, reverse=True)
    parts = [_reason_with_count(group) for group in groups[:_MOST_REASONS]]
    if rest := sum(map(len, groups[_MOST_REASONS:])):
        parts.append(f"{counted(rest, 'case')} for other reasons; -rs lists them")
    return "; ".join(parts)


def _reason_with_count(reasons: list[str]) -> str:
    """Return the first of several similar reasons, after the number of cases."""
    cases, first = counted(len(reasons), "case"), reasons[0]
    if first == NO_JUDGE:
        return f"{cases} {first if len(reasons) == 1 else first.replace('has', 'have', 1)}"
    return f"{cases}: {first}{' and the like' if len(set(reasons)) > 1 else ''}"
