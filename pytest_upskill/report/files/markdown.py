"""The report as GitHub-flavored Markdown, for pull request comments and job summaries."""

import html
import re
from collections.abc import Iterator, Sequence

from pytest_upskill.figures import presentation
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.messages import safe
from pytest_upskill.report.document import MARKER, Report
from pytest_upskill.report.files import phrases
from pytest_upskill.report.notes import all_notes

COMMENT_LIMIT = 65_536
"""GitHub's limit of a comment in characters, applied to bytes, which are never fewer."""

_MOST_ROWS = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0)
"""Rows of a list or table to show, tried in turn until the page is small enough."""


def code(text: str, *, table: bool = False) -> str:
    """Return untrusted text as inline code, where HTML, links and @mentions have no effect.

    Args:
        text: Any text; it becomes one line.
        table: Whether the text is for a table cell, where ``|`` must be escaped.
    """
    text = safe(text).replace("\n", " ") or " "
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if "`" in (text[0], text[-1]) else ""
    text = text.replace("|", "\\|") if table else text
    return f"{ticks}{pad}{text}{pad}{ticks}"


def write_markdown(report: Report, limit: int = COMMENT_LIMIT) -> str:
    """Return a report as Markdown, most important part first.

    Args:
        report: The report.
        limit: Maximum UTF-8 bytes; rows that do not fit are left out and counted, and nothing is
            written where not even the first lines fit.
    """
    pages = ("".join(_parts(report, most)) for most in _MOST_ROWS)
    return next((page for page in pages if len(page.encode()) <= limit), "")


def _parts(report: Report, most: int) -> Iterator[str]:
    said = phrases.headline(report)
    yield f"{MARKER}\n### {phrases.OUTCOME_ICONS[phrases.mark(report)]} {code(said)}\n\n"
    failures = [line for gate in report.failed_gates for line in (gate.text, *gate.details)]
    yield _list("", [line for line in failures if line != said], most)
    yield _list("", phrases.results_in_words(report), most)
    if measured := phrases.scope(report):
        yield f"{measured}\n\n"
    models, skills = phrases.matrix(report)
    rows = [(_cell(skill), *map(_matrix_entry, gates)) for skill, gates in skills]
    yield _table(("skill", *map(_cell, models)), rows, most)
    yield _list("Failed cases", [*phrases.failed_case_lines(report)], most)
    yield _list("Notes", all_notes(report), most)
    recordings = [line for session in report.sessions for line in session.recordings]
    yield _list("Recordings and baselines that this branch changed", recordings, most)
    yield from _triggers(report.triggers, most)
    if most:
        yield from (_cases(gate, most) for gate in report.lifts)
    yield _footer(report)


def _list(title: str, lines: Sequence[str], most: int) -> str:
    head = f"#### {title}\n\n" if title else ""
    return _rows(head, [f"- {code(line)}\n" for line in lines], most)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> str:
    head = f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}\n"
    return _rows(head, [f"| {' | '.join(row)} |\n" for row in rows], most)


def _rows(head: str, rows: Sequence[str], most: int) -> str:
    """Return the first rows and the number of the others; nothing without rows."""
    if not rows:
        return ""
    more = len(rows) - most
    rest = f"\n_{more} more: --upskill-html has them._\n" if more > 0 else ""
    return f"{head}{''.join(rows[:most])}{rest}\n"


def _folded(title: str, text: str) -> str:
    summary = f"<summary><code>{html.escape(safe(title))}</code></summary>"
    return f"<details>{summary}\n\n{text}</details>\n\n"


def _cell(text: str) -> str:
    return code(text, table=True)


def _triggers(gates: Sequence[Gate], most: int) -> Iterator[str]:
    """Yield how often each skill is chosen, and what was taken instead."""
    if gates:
        yield "#### Is the skill chosen?\n\n"
        rows = [
            (_cell(each.cell.name), *presentation.columns_of(each).values(), _outcome(each))
            for each in gates
        ]
        yield _table(("skill on model", *presentation.columns_of(gates[0]), "gate"), rows, most)
    for model, taken, matrix in phrases.confusion_matrices(gates):
        rows = [(_cell(wanted), *map(str, counts)) for wanted, counts in matrix.items()]
        title = f"right skill (rows) and chosen skill (columns), in runs of {model}"
        yield _folded(title, _table(("", *map(_cell, taken)), rows, most))


def _outcome(gate: Gate) -> str:
    text = "**failed**" if gate.outcome == "failed" else gate.outcome
    return f"{text}<br>**{gate.cell.failed_text}**" if gate.cell.failed_text else text


def _matrix_entry(gate: Gate | None) -> str:
    if gate is None:
        return "\u2013"
    parts = "  ".join(phrases.matrix_parts(gate))
    text = f"{phrases.ICONS[gate.verdict]} {gate.qualified_verdict}<br>{parts}"
    failed = ["gate failed"] if gate.outcome == "failed" else []
    failed += [gate.cell.failed_text] if gate.cell.failed_text else []
    return f"{text}<br>**{', '.join(failed)}**" if failed else text


def _cases(gate: Gate, most: int) -> str:
    rows = [
        (
            _cell(case.case),
            f"**failed**, {_status(case)}" if case.failed else _status(case),
            *map(phrases.arrows, presentation.case_columns(case).values()),
        )
        for case in presentation.case_lines(gate)
    ]
    rows += [(_cell(case), "skipped", "", "", "", "") for case in gate.cell.cases_not_run]
    passed = f"passed {phrases.arrows(presentation.arms_of([gate]))}"
    columns = ("case", "", passed, "with - without", "checks", "tokens")
    return _folded(f"{gate.cell.name}: all cases", _table(columns, rows, most))


def _status(case: presentation.CaseLine) -> str:
    return f"{case.status} than {_cell(case.than)}" if case.than else case.status


def _footer(report: Report) -> str:
    rows = [f"- {name}: {value}\n" for name, value in phrases.costs(report)]
    for session in report.sessions:
        versions = ", ".join(code(" ".join(each)) for each in session.versions.items())
        rows.append(f"- {session.date:%Y-%m-%d %H:%M} UTC: {versions}\n")
        rows += [
            f"- {code(label)} is {code(resolved)}\n" for label, resolved in session.models.items()
        ]
    arms = phrases.arrows(presentation.arms_of(report.lifts))
    return _folded(
        "cost, versions, how to read this",
        f"{''.join(rows)}\nPass rates {arms} the skill; lift in points with its 95 % interval; "
        "tokens per run as a multiple of those without it.\n\n",
    )
