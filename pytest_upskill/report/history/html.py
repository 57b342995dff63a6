"""The history as one static page without network access or scripts."""

from __future__ import annotations

from markupsafe import Markup

from pytest_upskill.figures.wording import lift
from pytest_upskill.report.files.html import environment, style
from pytest_upskill.report.history import chart as charts
from pytest_upskill.report.history.points import History
from pytest_upskill.report.history.terminal import rate


def write_history_html(history: History) -> str:
    """Return the history as a page: a chart and a table for each skill on each model."""
    css, digest = style()
    template = environment().get_template("history.html")
    return template.render(
        history=history,
        charts=charts,
        lift=lift,
        interval=rate,
        css=Markup(css),  # noqa: S704  the package's own file
        css_digest=digest,
    )
