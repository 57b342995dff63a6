"""The report as one static page without network access or scripts."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_upskill.figures import cases
from pytest_upskill.figures.figure import figures
from pytest_upskill.figures.gate import ShownVerdict
from pytest_upskill.figures.trial_group import ARM_NAMES
from pytest_upskill.figures.wording import mistakes, money, percent, points, rate_text, share_text
from pytest_upskill.project.messages import safe
from pytest_upskill.report.document import Report
from pytest_upskill.report.files import charts, excerpts, phrases
from pytest_upskill.report.files.phrases import confusion_matrices
from pytest_upskill.report.notes import notes_of
from pytest_upskill.report.outcome import outcome, why_undecided

MOST_BYTES = 5_000_000

_EXCERPTS = (4096, 2048, 1024, 512, 256, 128, 0)
"""Characters of an answer to show, tried in turn until the page is small enough."""


_ICONS: Mapping[ShownVerdict, str] = {
    "regression": "\u25bc",
    "helps": "\u25b2",
    "hurts": "\u25bc",
    "no effect": "=",
    "too few runs": "?",
    "missing data": "!",
}
"""Characters that every font has, instead of the emoji in Markdown."""


def write_html(report: Report) -> str:
    """Return a report as a page of at most `MOST_BYTES`, unless it is larger without answers."""
    template = environment().get_template("report.html")
    css, css_digest = style()
    page = ""
    for limit in _EXCERPTS:
        page = template.render(
            report=report,
            # Cells grouped by skill.
            skills=[list(group) for _, group in groupby(report.cells, key=lambda c: c.path)],
            css=Markup(css),  # noqa: S704  the package's own file
            css_digest=css_digest,
            limit=limit,
        )
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def style() -> tuple[str, str]:
    """Return the style sheet of all pages, and its hash for the content security policy."""
    css = files("pytest_upskill.report.files").joinpath("templates/report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return css, f"sha256-{digest}"


def environment() -> Environment:
    """Return the environment of the templates, in which every printed value is escaped."""
    made = Environment(
        loader=PackageLoader("pytest_upskill.report.files"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Show terminal escapes and bidirectional overrides in every printed value.
        finalize=_harmless,
    )
    made.filters |= {
        "points": points,
        "shorten": excerpts.shorten,
        "money": money,
        "rate": lambda rate: f"{percent(rate)} %",
        "short": short,
    }
    made.globals |= {
        "arm_names": ARM_NAMES,
        "cases": cases,
        "charts": charts,
        "confusion_matrices": confusion_matrices,
        "counted": Counter,
        "excerpts": excerpts,
        "figures": figures,
        "mistakes": mistakes,
        "rate_text": rate_text,
        "icons": _ICONS,
        "notes_of": notes_of,
        "outcome": outcome,
        "why_undecided": why_undecided,
        "phrases": phrases,
        "share_text": share_text,
    }
    return made


def _harmless(value: object) -> object:
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def short(text: str, limit: int) -> str:
    """Return a long name without its middle; both ends may distinguish it from others."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}\u2026{text[head + 1 - limit :]}"
