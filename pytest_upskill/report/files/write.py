"""The formats of report files, and writing a report in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from pytest_upskill.project.files import write_file

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
    render = resolve_name(f"{__package__}.{REPORTS[wanted]}")
    texts = render(report, file) if wanted in _SEVERAL else [(file, render(report))]
    written = []
    for path, text in texts:
        write_file(path, text.encode(), mode=0o666)
        written.append(path)
    return written


REPORTS: Mapping[str, str] = {
    "json": "json:write_json",
    "md": "markdown:write_markdown",
    "html": "html:write_html",
    "benchmark-json": "benchmark_json:write_benchmarks",
}
"""Formats of report files and the functions that write them, imported when needed.

Each has an option of the same name.
"""

_SEVERAL = frozenset({"benchmark-json"})
"""Formats with a file for each cell, whose names depend on the requested one."""
