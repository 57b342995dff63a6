"""The report as one static page without network access or scripts."""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_upskill.figures import presentation
from pytest_upskill.figures.trial_group import ARM_NAMES
from pytest_upskill.figures.wording import money, points, shorten
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import safe
from pytest_upskill.report import notes, trajectory
from pytest_upskill.report.document import Report
from pytest_upskill.report.files import phrases
from pytest_upskill.trials.result import RunResult, TrialResult

MOST_BYTES = 5_000_000


def write_html(report: Report) -> str:
    """Return a report as a page of at most `MOST_BYTES`, unless it is larger without answers."""
    template = environment().get_template("report.html")
    # Characters of an answer to show, until the page is small enough.
    for limit in (4096, 2048, 1024, 512, 256, 128, 0):
        page = template.render(report=report, limit=limit)
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


@cache  # To compile a template takes longer than to fill it in.
def environment(*packages: str) -> Environment:
    """Return the environment of the templates, in which every printed value is escaped.

    It has the style sheet of all pages, and its hash for the content security policy.

    Args:
        packages: Packages with further templates.
    """
    css = files("pytest_upskill.report.files").joinpath("templates/report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    made = Environment(
        loader=ChoiceLoader([*map(PackageLoader, (*packages, "pytest_upskill.report.files"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Show terminal escapes and bidirectional overrides in every printed value.
        finalize=_harmless,
    )
    made.filters |= {"points": points, "shorten": shorten, "money": money, "arrow": phrases.arrows}
    made.globals |= {
        "arm_names": ARM_NAMES,
        "counted": Counter,
        "css": Markup(css),  # noqa: S704  the package's own file
        "css_digest": f"sha256-{digest}",
        "alike": alike,
        "bar_x": bar_x,
        "icons": phrases.ICONS,
        "notes": notes,
        "phrases": phrases,
        "presentation": presentation,
        "trajectory": trajectory,
    }
    return made


def _harmless(value: object) -> object:
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def bar_x(difference: float) -> float:
    """Return the place of a difference of pass rates on a bar from -100 to +100 points."""
    return 200 * (0.02 + 0.96 * (difference + 1) / 2)


def alike(trial: TrialResult) -> list[tuple[Sequence[int], RunResult]]:
    """Return the numbers, from 1, of runs with the same answer and results, and the first one."""
    groups = grouped(
        ((run.completion.text, run.checks, run.ending), number)
        for number, run in enumerate(trial.runs, 1)
    )
    return [(numbers, trial.runs[numbers[0] - 1]) for numbers in groups.values()]
