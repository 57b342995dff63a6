"""The reports that an option names a file for, each made only where it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from pytest_upskill.report.document import Report
from pytest_upskill.settings import ReportFormat


def write(report: Report, wanted: ReportFormat, file: Path) -> None:
    """Write a report to a file, in folders that are made where they are missing.

    Raises:
        OSError: The file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render(report, wanted), "utf-8")


def render(report: Report, wanted: ReportFormat) -> str:
    """Write a report as the text of one file."""
    match wanted:
        case "json":
            from pytest_upskill.report.json_report import write_json

            return write_json(report)
        case "md":
            from pytest_upskill.report.markdown import write_markdown

            return write_markdown(report)
        case "html":
            from pytest_upskill.report.html import write_html

            return write_html(report)
        case _:
            assert_never(wanted)
