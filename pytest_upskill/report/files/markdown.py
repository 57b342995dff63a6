"""The report as GitHub-flavored Markdown, for pull request comments and job summaries."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_upskill.figures.cases import CaseLine, case_lines
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.figure import case_columns, columns_of
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.messages import safe
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.phrases import (
    ICONS,
    OUTCOME_ICONS,
    confusion_matrices,
    costs,
    failed_case_lines,
    headline,
    matrix,
    matrix_parts,
    results_in_words,
    scope,
)
from pytest_upskill.report.notes import notes, statements_not_graded
from pytest_upskill.report.outcome import outcome, why_undecided
from pytest_upskill.trials.needs import unmeasured_lines

COMMENT_LIMIT = 65_536
"""GitHub's limit of a comment in characters, applied to bytes, which are never fewer."""

_RESERVE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page whose rows can be left out."""

    head: str
    rows: tuple[str, ...] = ()
    tail: str = ""


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


def table_head(*columns: str) -> str:
    """Return the first two lines of a table."""
    return f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}\n"


def folded(title: str) -> str:
    """Return the start of a part that is folded, which ``</details>`` ends."""
    return f"<details><summary><code>{html.escape(safe(title))}</code></summary>\n\n"


def fit(sections: Sequence[Section], footer: Section, limit: int) -> str:
    """Return the sections joined; each keeps its head and as many rows as fit the limit."""
    left = limit - _RESERVE
    last, left_out = _take(footer, left)
    left -= _bytes(last)
    page = ""
    for section in sections:
        text, more = _take(section, left)
        left -= _bytes(text)
        left_out += more
        page += text
    if left_out:
        page += f"_{left_out} sections left out to limit the size: --upskill-html has them._\n\n"
    return page + last


def _take(section: Section, room: int) -> tuple[str, int]:
    """Return the part of a section that fits, and the number of parts left out."""
    room -= _bytes(section.head + section.tail)
    if room < 0:
        return "", 1
    sizes = accumulate(_bytes(row) for row in section.rows)
    rows = section.rows[: sum(size <= room for size in sizes)]
    return section.head + "".join(rows) + section.tail, len(section.rows) - len(rows)


def _bytes(text: str) -> int:
    return len(text.encode())


MARKER = "<!-- pytest-upskill -->"
"""First line, by which a bot finds the comment to update."""


def write_markdown(report: Report, limit: int = COMMENT_LIMIT) -> str:
    """Return a report as Markdown, most important part first.

    Args:
        report: The report.
        limit: Maximum UTF-8 bytes; parts that do not fit are left out, and the page counts them.
    """
    sections = [*_overview(report), *_triggers(report), *_details(report.lifts)]
    return fit(sections, _footer(report), limit)


def _overview(report: Report) -> Iterator[Section]:
    measured = f"{scope(report)}\n\n" if scope(report) else ""
    icon = OUTCOME_ICONS[outcome(report)]
    yield Section(
        head=f"{MARKER}\n### {icon} {_heading(report)}\n\n",
        rows=tuple(f"- {code(line)}\n" for line in results_in_words(report)),
        tail=f"\n{measured}",
    )
    yield _matrix(report)
    failed = (gate for gate in report.gates if gate.outcome == "failed")
    note_lines = (
        *why_undecided(report),
        *(line for session in report.sessions for line in session.without_trials),
        *(unmeasured_lines(report.unmeasured_skills) if report.gates else ()),
        *notes(report.lifts, verbose=False),
        *notes(report.triggers, verbose=False),
        *statements_not_graded(report.lifts),
    )
    for title, lines in (
        ("Failed cases", list(failed_case_lines(report))),
        ("Failed gates", [line for gate in failed for line in (gate.text, *gate.details)]),
        ("Notes", [*dict.fromkeys(note_lines)]),
        (
            "Recordings that this branch changed",
            [line for session in report.sessions for line in session.recordings],
        ),
    ):
        if lines:
            rows = tuple(f"- {code(line)}\n" for line in lines)
            yield Section(head=f"#### {title}\n\n", rows=rows, tail="\n")


def _triggers(report: Report) -> Iterator[Section]:
    """Yield how often each skill is chosen, and what was taken instead."""
    rows = tuple(
        f"| {code(gate.cell.title, table=True)} | {code(gate.cell.model, table=True)} "
        f"| {' | '.join(columns_of(gate).values())} | {_outcome(gate)} |\n"
        for gate in report.triggers
    )
    if rows:
        columns = ("skill", "model", *columns_of(report.triggers[0]), "gate")
        yield Section(
            head="#### Is the skill chosen?\n\n" + table_head(*columns), rows=rows, tail="\n"
        )
    for each in confusion_matrices(report.triggers):
        yield Section(
            head=folded(f"right skill (rows) and chosen skill (columns), in runs of {each.model}")
            + table_head("", *(code(name, table=True) for name in each.taken)),
            rows=tuple(
                f"| {code(wanted, table=True)} | {' | '.join(map(str, counts))} |\n"
                for wanted, counts in each.rows
            ),
            tail="\n</details>\n\n",
        )


def _outcome(gate: Gate) -> str:
    text = "**failed**" if gate.outcome == "failed" else gate.outcome
    return f"{text}<br>**{gate.cell.failed_text}**" if gate.cell.failed_text else text


def _heading(report: Report) -> str:
    # The only untrusted words of a headline are the names of a single cell.
    return code(headline(report)) if len(report.lifts) == 1 else headline(report)


def _matrix(report: Report) -> Section:
    models, skills = matrix(report)
    rows = tuple(
        f"| {code(skill, table=True)} | {' | '.join(map(_matrix_entry, gates))} |\n"
        for skill, gates in skills
    )
    head = table_head("skill", *(code(model, table=True) for model in models)) if rows else ""
    return Section(head=head, rows=rows, tail="\n")


def _matrix_entry(gate: Gate | None) -> str:
    if gate is None:
        return "\u2013"
    text = f"{ICONS[gate.verdict]} {gate.verdict}<br>{'  '.join(matrix_parts(gate))}"
    failed = ["gate failed"] if gate.outcome == "failed" else []
    failed += [gate.cell.failed_text] if gate.cell.failed_text else []
    return f"{text}<br>**{', '.join(failed)}**" if failed else text


_CASE_HEAD = ("passed without \u2192 with", "difference", "checks", "tokens")


def _details(gates: Sequence[Gate]) -> Iterator[Section]:
    for gate in gates:
        cell = gate.cell
        yield Section(
            head=folded(f"{cell.name}: all cases") + table_head("case", "", *_CASE_HEAD),
            rows=(*_case_rows(gate), *_rows_not_run(cell)),
            tail="\n</details>\n\n",
        )


def _case_rows(gate: Gate) -> Iterator[str]:
    for case in case_lines(gate):
        status = f"**failed**, {case.status}" if case.failed else case.status
        yield f"| {code(case.case, table=True)} | {status} | {_case_columns(case)} |\n"


def _rows_not_run(cell: Cell) -> Iterator[str]:
    nothing = " | " * (len(_CASE_HEAD) - 1)
    for case in cell.cases_not_run:
        yield f"| {code(case, table=True)} | skipped | {nothing} |\n"


def _footer(report: Report) -> Section:
    rows = [f"- {name}: {value}\n" for name, value in costs(report)]
    for session in report.sessions:
        versions = ", ".join(code(" ".join(each)) for each in session.versions.items())
        rows.append(f"- {session.date:%Y-%m-%d %H:%M} UTC: {versions}\n")
        rows += [
            f"- {code(label)} is {code(resolved)}\n" for label, resolved in session.models.items()
        ]
    return Section(
        head=folded("cost, versions, how to read this"),
        rows=tuple(rows),
        tail="\nPass rates without \u2192 with the skill; lift in points with its 95 % interval; "
        "tokens per run as a multiple of those without the skill.\n\n</details>\n",
    )


def _case_columns(case: CaseLine) -> str:
    return " | ".join(case_columns(case).values()).replace("->", " \u2192 ")
