"""Writing a report: to files, in each of their formats, and to GitHub Actions."""

import errno
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name

from pytest_upskill.project.files import write_file
from pytest_upskill.report.document import MARKER, Report


def write(report: Report, wanted: str, file: Path) -> Path:
    """Write a report to a file, create missing folders, and return the file.

    Args:
        report: The report.
        wanted: Format of the file, a key of `REPORTS`.
        file: Path of the file.

    Raises:
        OSError: The file cannot be written, or is none that a report may replace.
    """
    if problem := why_not_to_write(wanted, file):
        raise FileExistsError(errno.EEXIST, problem, str(file))
    writer, _ = REPORTS[wanted]
    render = resolve_name(f"{__package__}.{writer}")
    write_file(file, render(report).encode(), mode=0o666)
    return file


def why_not_to_write(wanted: str, file: Path) -> str:
    """Return why a file must not become a report, and what to do; empty if it may.

    Args:
        wanted: Format of the report, a key of `REPORTS`.
        file: Path of the file.
    """
    if file.is_dir():
        return "a folder: write the name of a file"
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        start = stream.read(4000)
    _, mark = REPORTS[wanted]
    is_report = not start or mark.encode() in start
    return "" if is_report else "not such a report: write another name"


REPORTS: Mapping[str, tuple[str, str]] = {
    "json": ("json:write_json", '"sessions": ['),
    "md": ("markdown:write_markdown", MARKER),
    "html": ("html:write_html", "pytest-upskill</title>"),
}
"""Formats of report files, each with the function that writes it, which is imported when needed,
and what begins the files that it may replace.

Each has an option of the same name.
"""


def in_github_actions(environment: Mapping[str, str]) -> bool:
    """Return whether this is a job of GitHub Actions."""
    return any(environment.get(name) for name in _FILES)


def write_for_github(report: Report, environment: Mapping[str, str]) -> list[str]:
    """Write summary and outputs to the files of GitHub Actions; do nothing elsewhere.

    Args:
        report: The report.
        environment: Environment variables.

    Returns:
        A line for each file that could not be written.
    """
    problems = []
    for name, text in _FILES.items():
        if file := environment.get(name):
            try:
                with Path(file).open("a", encoding="utf-8") as stream:
                    # GitHub shows no summary of a step over 1 MiB.
                    stream.write(text(report, 900_000 - stream.tell()))
            except OSError as error:
                problems.append(f"cannot write {name}: {error.strerror}")
    return problems


def _summary(report: Report, room: int) -> str:
    from pytest_upskill.report.files.markdown import write_markdown

    return write_markdown(report, room)


def _outputs(report: Report, _room: int) -> str:
    """Return the step's outputs; JSON keeps each on one line, whatever the names of skills."""
    from pytest_upskill.report.exit_code import outcome
    from pytest_upskill.report.files.phrases import overall_verdict

    gates = [gate.cell.name for gate in report.failed_gates]
    cases = [
        f"{gate.cell.title}::{trial.case} on {gate.cell.model}"
        for gate, trial in report.failed_cases
    ]
    return (
        f"outcome={outcome(report)}\n"
        f"verdict={overall_verdict(report)}\n"
        f"failed-gates={json.dumps(gates)}\n"
        f"failed-cases={json.dumps(cases)}\n"
    )


_FILES: Mapping[str, Callable[[Report, int], str]] = {
    "GITHUB_STEP_SUMMARY": _summary,
    "GITHUB_OUTPUT": _outputs,
}
"""Variables that contain file names, and functions that return the text to append."""
