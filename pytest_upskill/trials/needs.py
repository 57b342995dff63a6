"""What a case needs to be measured, and why cases are skipped."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_upskill.cases.skill import Case
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import counted, listed
from pytest_upskill.trials.result import CellKey, Unmeasured

NO_JUDGE = "has only statements for a judge: add --upskill-judge MODEL"
"""Why a case without checks by code is skipped if there is no judge."""

UNDECIDABLE = "its judge cannot decide any of its statements from an answer; use an agent"
"""Why a case is skipped after it was answered."""

_WAYS = ("by code", "by a judge", "by trigger", "by an agent")

_DIFFERING = re.compile(r" \('[^']*'\)|'[^']*'")
"""Parts in which reasons that are counted together may differ."""
_PLURAL = {"has": "have", "needs": "need"}
_MOST_REASONS = 5


def why_skipped(case: Case, *, chooses: bool, has_judge: bool, is_agent: bool) -> str | None:
    """Return why a trial of a case is skipped, None if it is not.

    Args:
        case: The case.
        chooses: Whether the trial is about which skill is chosen.
        has_judge: Whether there is a judge.
        is_agent: Whether the model runs as an agent.
    """
    if case.skip is not None:
        return case.skip
    if chooses:
        return None
    if case.agent_key and not is_agent:
        return (
            f"has files or needs commands ('{case.agent_key}'): write an agent before the model, "
            "as in loop:MODEL"
        )
    return NO_JUDGE if _has_only_statements(case) and not has_judge else None


def measured_by(cases: Iterable[Case]) -> str:
    """Return how cases can be measured: ``30 by code, 801 by a judge``; a case may count twice."""
    ways = Counter(way for case in cases for way in _ways(case))
    return ", ".join(f"{ways[way]} {way}" for way in _WAYS if ways[way])


def _ways(case: Case) -> Iterator[str]:
    if case.skip is not None:
        return
    if case.trigger is not None:
        yield "by trigger"
    if case.is_answered:
        if case.agent_key:
            yield "by an agent"
        else:
            yield "by a judge" if _has_only_statements(case) else "by code"


def _has_only_statements(case: Case) -> bool:
    return len(case.judge_checks) == len(case.checks)


def skip_reasons(
    skipped: Mapping[tuple[CellKey, str], str], measured: Iterable[tuple[CellKey, str]]
) -> Iterable[str]:
    """Return why cases are skipped on every model for which they are to run, one each.

    Args:
        skipped: The reasons by cell and id of the case.
        measured: Cells and ids of the other cases.
    """
    on_some = {(cell.path, cell.chooses, case) for cell, case in measured}
    reasons = {
        (cell.path, case): reason
        for (cell, case), reason in skipped.items()
        if (cell.path, cell.chooses, case) not in on_some
    }
    return reasons.values()


def skip_lines(reasons: Iterable[str], total: int = 0) -> list[str]:
    """Return a line for each of the most frequent reasons, such as ``3 cases: needs gcc``.

    Reasons that differ only in quoted parts are counted together.

    Args:
        reasons: One for each skipped case.
        total: Number of all cases, to write ``3 of 10 cases``; 0 to leave it out.
    """
    alike = grouped((_DIFFERING.sub("", reason), reason) for reason in reasons)
    groups = sorted(alike.values(), key=len, reverse=True)
    lines = [f"{_cases(len(group), total)}{_said(group)}" for group in groups[:_MOST_REASONS]]
    if rest := sum(map(len, groups[_MOST_REASONS:])):
        lines.append(f"{_cases(rest, total)} for other reasons; -rs lists them")
    return lines


def _said(reasons: Sequence[str]) -> str:
    """Return what is said of the cases with several similar reasons: the first of these."""
    first = reasons[0]
    if len(set(reasons)) > 1:
        plain = re.sub(r" \('[^']*'\)", "", first)
        first = plain if plain != first else f"{first} and the like"
    if not first.startswith(tuple(_PLURAL)):
        return f": {first}"
    lack, colon, cure = first.partition(":")
    words = lack.split(" ") if len(reasons) == 1 else [_PLURAL.get(w, w) for w in lack.split(" ")]
    return f" {' '.join(words)}{colon}{cure}"


def _cases(count: int, total: int) -> str:
    return f"{count} of {total} cases" if total else counted(count, "case")


def unmeasured_lines(skills: Sequence[Unmeasured]) -> Iterator[str]:
    """Yield a line about the skills of which every case was skipped, with the reasons."""
    if not skills:
        return
    names = [f"{each.skill} on {each.model}" for each in skills]
    reasons = "; ".join(skip_lines(reasons_of(skills)))
    yield f"not measured, as every case was skipped: {listed(names)}: {reasons}"


def reasons_of(skills: Iterable[Unmeasured]) -> Iterable[str]:
    """Return the reason of each skipped case; on several models it is one case."""
    return {
        (skill.path, skill.skill, skipped.case): skipped.reason
        for skill in skills
        for skipped in skill.cases
    }.values()
