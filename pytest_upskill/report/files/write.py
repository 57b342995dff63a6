"""The formats of report files, and writing a report in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_upskill.report.document import Report


def write(report: Report, wanted: str, file: Path) -> list[Path]:
    """Write a report to a file, and create missing folders.

    Args:
        report: The report.
        wanted: Format of the file, a key of `REPORTS`.
        file: Path of the file.

    Returns:
        The written files; several if the format has one file for each cell.

    Raises:
        OSError: A file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for path, text in REPORTS[wanted](report, file):
        path.write_text(text, "utf-8")
        written.append(path)
    return written


Render = Callable[["Report", Path], Iterable[tuple[Path, str]]]
"""Function that returns the path and the text of each file of a report."""


def _text(function: str) -> Render:
    """Return a renderer of one file; ``function``, of a module here, is imported when needed."""
    return lambda report, file: [(file, resolve_name(f"{__package__}.{function}")(report))]


def _files(function: str) -> Render:
    """Return a renderer of several files, whose names depend on the requested one."""

    def render(report: Report, file: Path) -> Iterable[tuple[Path, str]]:
        files: Iterable[tuple[Path, str]] = resolve_name(f"{__package__}.{function}")(report, file)
        return files

    return render


REPORTS: Mapping[str, Render] = {
    "json": _text("json:write_json"),
    "md": _text("markdown:write_markdown"),
    "html": _text("html:write_html"),
    "benchmark-json": _files("benchmark_json:write_benchmarks"),
}
"""Formats of report files; each has an option of the same name."""
