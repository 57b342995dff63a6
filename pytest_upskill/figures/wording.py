"""Texts about trials and cells, in which model output is safe to print."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from itertools import accumulate

from pytest_upskill import stats
from pytest_upskill.figures.arm import ArmFigures, token_ratio
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.thresholds import Thresholds
from pytest_upskill.figures.trigger_cell import NO_SKILL, Confusion, Rate, TriggerCell, any_except
from pytest_upskill.project.messages import counted, safe
from pytest_upskill.stats import Agreement, Estimate, Interval
from pytest_upskill.trials.result import RunResult, TrialResult

ANSWER = "answer"
"""Name of the report section with an answer that did not pass."""

JUDGED_PAST = (
    "a judge decided both versions, and no labels show its errors about the old one: read the "
    "answers before you change the skill"
)
"""Caveat about a regression that a judge found."""

_SHOWN = 8192
"""Characters of an answer that a report shows."""


def quoted_lines(text: str) -> str:
    """Return model output with a bar before each line.

    The bar keeps CI runners from interpreting a line such as ``::error`` as a command.
    """
    more = len(text) - _SHOWN
    if more > 0:
        text = f"{text[:_SHOWN]}\n[... {more} more characters]"
    return "".join(f"| {line}\n" for line in safe(text).split("\n"))


def failure(result: TrialResult) -> str:
    """Return the report of a failed trial; its first line is a complete summary for dashboards."""
    missed: dict[tuple[str, ...], list[int]] = {}
    for number, run in enumerate(result.runs, 1):
        if not run.passed:
            missed.setdefault(tuple(_failure_lines(run)), []).append(number)
    first = next(iter(missed))
    if len(result.runs) == 1 and not result.errors:
        return "\n".join(first)
    missing = f" ({len(result.errors)} missing)" if result.errors else ""
    passed = f"{result.passes} of {len(result.runs)} runs passed{missing}"
    lines = [f"{passed}; {_required_passes(result)}: {first[0]}"]
    for misses, numbers in missed.items():
        lines.append(f"{'run' if len(numbers) == 1 else 'runs'} {', '.join(map(str, numbers))}:")
        lines += [f"  {line}" for line in misses]
    return "\n".join(lines)


CASE_NEXT_STEP = (
    "next: read the answers of the failed cases, and correct the skill or the case; min_pass_rate "
    "sets how many runs must pass"
)
"""Advice about cases that failed."""


def _required_passes(result: TrialResult) -> str:
    runs = len(result.runs)
    least = result.required_passes(runs)
    if result.min_pass_rate is None:
        return "more than half must (--upskill-min-pass-rate changes that)"
    required = f"all {runs}" if least == runs else f"at least {least}"
    return f"{required} must (min_pass_rate {result.min_pass_rate:g})"


def cell_sentence(cell: Cell) -> str:
    """Return a cell's verdict, pass rates and lift with its interval, in one sentence."""
    with_, without = cell.with_skill, cell.without_skill
    if with_ is None or without is None or cell.lift is None:
        return "no case ran in both arms"
    needed = f", about {cell.runs_needed} are needed" if cell.runs_needed else ""
    by = " by an uncalibrated judge" if cell.uncalibrated else ""
    judged = "judged lift" if cell.judged else "lift"
    more = [text for text in (corrected(cell), tipping_point(cell)) if text]
    sentence = (
        f"{cell.verdict}{by}{needed}: passed {percent(without.pass_rate)}% without, "
        f"{percent(with_.pass_rate)}% with, "
        f"{judged} {points(cell.lift.estimate)} points {bounds(cell.lift)}"
    )
    return ", ".join([sentence, *more])


def corrected(cell: Cell) -> str:
    """Return the corrected lift: ``corrected +27 [+6, +48]``; empty without a calibrated judge."""
    return f"corrected {estimate(cell.correction.estimate)}" if cell.correction else ""


def lift(cell: Cell) -> str:
    """Return the lift, ``+20 [-3,+41]``; the corrected one beside the one that a judge found."""
    if cell.lift is None or cell.deciding_lift is None:
        return "n/a"
    judged = f", judged {points(cell.lift.estimate)}" if cell.correction else ""
    return estimate(cell.deciding_lift).replace(", ", ",") + judged


def tipping_point(cell: Cell) -> str:
    """Return how wrong an uncalibrated judge would have to be; empty without such a verdict."""
    least = cell.judged.tipping_point if cell.judged else None
    if least is None or cell.doubt:
        return ""
    favors = "favors" if cell.verdict == "helps" else "disfavors"
    return f"holds unless the judge {favors} the skill by more than {points(least)[1:]} points"


def judge_accuracy(agreement: Agreement) -> str:
    """Return how often a judge is right: ``accepts 92% [80-97] of correct answers, rejects …``."""
    shares = (("accepts", agreement.holds, "correct"), ("rejects", agreement.fails, "wrong"))
    return ", ".join(
        f"{does} {percent(share.estimate)}% [{100 * share.low:.0f}-{100 * share.high:.0f}] "
        f"of {which} answers"
        for does, share, which in shares
        if share is not None
    )


def trigger_sentence(cell: TriggerCell) -> str:
    """Return a cell's figures in one sentence."""
    parts = []
    if cell.recall is not None:
        parts.append(f"recall {rate_text(cell.recall)} on {_queries(cell.recall)} that should")
    if cell.false_triggers is not None:
        false = cell.false_triggers
        parts.append(f"false triggers {rate_text(false)} on {_queries(false)} that should not")
    if cell.precision is not None:
        parts.append(f"precision {percent(cell.precision)}%")
    return ", ".join(parts) or "no query has a valid run"


def rate_text(rate: Estimate) -> str:
    """Return a rate with its interval, ``90% [70, 97]``."""
    return f"{percent(rate.estimate)}% [{percent(rate.low)}, {percent(rate.high)}]"


def mistakes(cell: TriggerCell) -> str:
    """Return which wrong skills were chosen: ``chose tsv instead of csv (3 runs)``."""
    return "; ".join(
        f"{_mistake(confusion)} ({counted(confusion.runs, 'run')})" for confusion in cell.mistakes
    )


def _mistake(confusion: Confusion) -> str:
    if confusion.wanted == any_except(confusion.taken):
        return f"chose {confusion.taken} where it should not"
    taken, wanted = (
        "no skill" if name == NO_SKILL else name for name in (confusion.taken, confusion.wanted)
    )
    return f"chose {taken} instead of {wanted}"


def too_few_queries_notes(cell: TriggerCell, thresholds: Thresholds) -> list[str]:
    """Return a note for each rate whose interval is too wide to rely on."""
    notes = []
    limits = thresholds.with_overrides(cell.gate)
    for rate, least, most, kind in (
        (cell.recall, limits.min_recall, None, "that should trigger it"),
        (cell.false_triggers, None, limits.max_false_triggers, "that should not"),
    ):
        if rate is None:
            continue
        needed = stats.queries_needed(rate.estimate, least=least, most=most)
        if needed is not None and needed > rate.queries:
            tell = "tells" if rate.queries == 1 else "tell"
            notes.append(f"{_queries(rate)} {kind} {tell} little: about {needed} would be enough")
    return notes


def _queries(rate: Rate) -> str:
    return counted(rate.queries, "query", "queries")


def columns(text: str) -> int:
    """Return the terminal columns of ``safe`` text."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # holds tables of Unicode, and most runs print ASCII

    return wcswidth(text)


def wrap(text: str, width: int) -> list[str]:
    """Return a line wrapped between words at ``width`` columns; continuation lines are indented."""
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def fit_parts(parts: Iterable[str], width: int) -> str:
    """Return as many of the first parts, joined by commas, as fit in ``width`` columns."""
    joined = accumulate(map(safe, parts), "{}, {}".format)
    return max((line for line in joined if columns(line) <= width), key=len, default="")


def points(fraction: float) -> str:
    """Return a difference of rates, given as a fraction, in percentage points with its sign."""
    for digits in range(2):
        text = f"{100 * fraction:+.{digits}f}"
        if float(text):
            return text
    return "+0"


def estimate(value: Estimate) -> str:
    """Return a difference of rates with its interval, in percentage points: ``+20 [-3, +41]``."""
    return f"{points(value.estimate)} {bounds(value)}"


def bounds(interval: Interval | Estimate) -> str:
    """Return an interval of a difference of rates in percentage points: ``[-3, +41]``."""
    return f"[{points(interval.low)}, {points(interval.high)}]"


def percent(rate: float) -> str:
    """Return a rate in whole percent, with a decimal if rounding would hide a pass or a failure."""
    whole = f"{100 * rate:.0f}"
    if whole in {"0", "100"} and 0 < rate < 1:
        return f"{min(max(100 * rate, 0.1), 99.9):.1f}"
    return whole


def times(without: ArmFigures | None, with_: ArmFigures | None) -> str | None:
    """Return mean tokens with the skill divided by those without, None if not counted."""
    ratio = token_ratio(without, with_)
    return None if ratio is None else f"{ratio:.2f}"


def money(dollars: float | None, *, at_most: bool = False) -> str:
    """Return dollars to the cent, below $1 to a hundredth of a cent; bounds are rounded up."""
    if dollars is None:
        return "cost n/a"
    digits = 2 if dollars >= 1 else 4
    if at_most:
        dollars = math.ceil(dollars * 10**digits) / 10**digits
    return f"${dollars:,.{digits}f}"


def _failure_lines(run: RunResult) -> list[str]:
    """Return why a run did not pass: a line for each failed check, followed by its details."""
    lines = [run.ending] if run.ending else []
    for check in run.checks:
        if not check.passed:
            lines.append(safe(check.message))
            lines += [f"  | {line}" for line in safe(check.detail).splitlines()]
    if run.choice is not None:
        return lines
    return [*lines, f"{run.held} of {len(run.checks)} checks passed"]
