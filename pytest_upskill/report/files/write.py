"""Writing of report files in the requested formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from pytest_upskill.report.files.document import Report
from pytest_upskill.report.names import ReportFormat


def write(report: Report, wanted: ReportFormat, file: Path) -> list[Path]:
    """Write a report to a file, and create missing folders.

    Args:
        report: The report.
        wanted: Format of the file.
        file: Path of the file.

    Returns:
        The written files; several if the format has one file for each cell.

    Raises:
        OSError: A file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for path, text in _render(report, wanted, file):
        path.write_text(text, "utf-8")
        written.append(path)
    return written


def _render(report: Report, wanted: ReportFormat, file: Path) -> Iterator[tuple[Path, str]]:
    match wanted:
        case "json":
            from pytest_upskill.report.files.json import write_json

            yield file, write_json(report)
        case "md":
            from pytest_upskill.report.files.markdown import write_markdown

            yield file, write_markdown(report)
        case "html":
            from pytest_upskill.report.files.html import write_html

            yield file, write_html(report)
        case "benchmark-json":
            from pytest_upskill.report.files.benchmark_json import write_benchmarks

            yield from write_benchmarks(report, file)
        case _:
            assert_never(wanted)
