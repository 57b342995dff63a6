"""Numbers and trials in words, in which model output is safe to print."""

import math
import textwrap
from collections.abc import Iterable
from itertools import accumulate

from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import safe
from pytest_upskill.stats import Estimate, Interval
from pytest_upskill.stats.calibration import Agreement
from pytest_upskill.trials.result import RunResult, TrialResult

ANSWER = "answer"
"""Name of the report section with an answer that did not pass."""

_SHOWN = 8192
"""Characters of an answer that a report shows."""


def quoted_lines(text: str) -> str:
    """Return model output with a bar before each line.

    The bar keeps CI runners from interpreting a line such as ``::error`` as a command.
    """
    return "".join(f"| {line}\n" for line in safe(shorten(text, _SHOWN)).split("\n"))


def shorten(text: str, limit: int, left_out: int = 0) -> str:
    """Return a text cut to a limit, with the number of characters that are missing.

    Args:
        text: Model output, of any length.
        limit: Characters to keep.
        left_out: Characters already cut from its end.
    """
    more = max(0, len(text) - limit) + left_out
    return f"{text[:limit]}\n[... {more} more characters]" if more else text


def failure(result: TrialResult) -> str:
    """Return the report of a failed trial; its first line is a complete summary for dashboards."""
    failed = ((number, run) for number, run in enumerate(result.runs, 1) if not run.passed)
    missed = grouped((tuple(_failure_lines(run)), number) for number, run in failed)
    first = next(iter(missed))
    if len(result.runs) == 1 and not result.errors:
        return "\n".join(first)
    missing = f" ({len(result.errors)} missing)" if result.errors else ""
    passed = f"{result.passes} of {len(result.runs)} runs passed{missing}"
    lines = [f"{passed}; {_required_passes(result)}: {first[0]}"]
    for misses, numbers in missed.items():
        # The first line has the reason, if there is only one.
        details = [f"  {line}" for line in misses[len(missed) == 1 :]]
        named = f"{'run' if len(numbers) == 1 else 'runs'} {', '.join(map(str, numbers))}:"
        lines += [named, *details] if details else []
    return "\n".join(lines)


def _required_passes(result: TrialResult) -> str:
    runs = len(result.runs)
    least = result.required_passes(runs)
    if result.min_pass_rate is None:
        return "more than half must (--upskill-min-pass-rate changes that)"
    required = f"all {runs}" if least == runs else f"at least {least}"
    return f"{required} must (min_pass_rate {result.min_pass_rate:g})"


def judge_accuracy(agreement: Agreement) -> str:
    """Return how often a judge is right: ``accepts 92% [80-97] of correct answers, rejects …``."""
    shares = (("accepts", agreement.holds, "correct"), ("rejects", agreement.fails, "wrong"))
    return ", ".join(
        f"{does} {percent(share.estimate)}% [{100 * share.low:.0f}-{100 * share.high:.0f}] "
        f"of {which} answers"
        for does, share, which in shares
        if share is not None
    )


def rate_text(rate: Estimate) -> str:
    """Return a rate with its interval, ``90% [70, 97]``."""
    return f"{percent(rate.estimate)}% [{percent(rate.low)}, {percent(rate.high)}]"


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


_TINY_P = 0.0001


def p_text(p: float) -> str:
    """Return ``p = 0.012``, or that it is too small to matter how small."""
    return f"p = {p:.2g}" if p >= _TINY_P else "p < 0.0001"


_LEAST_SHOWN = 0.0001
"""Dollars below which an amount would look like nothing."""


def money(dollars: float | None, *, at_most: bool = False) -> str:
    """Return dollars to the cent, below $1 to a hundredth of a cent; bounds are rounded up."""
    if dollars is None:
        return "cost n/a"
    if not dollars:
        return "$0"
    if dollars < _LEAST_SHOWN and not at_most:
        return f"below ${_LEAST_SHOWN:.4f}"
    digits = 2 if dollars >= 1 else 4
    if at_most:
        dollars = math.ceil(dollars * 10**digits) / 10**digits
    return f"${dollars:,.{digits}f}"


def original(cost: str) -> str:
    """Return the cost of replayed answers, as `money` says it, as that of another day."""
    return "original cost unknown" if cost == money(None) else f"{cost} when recorded"


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
