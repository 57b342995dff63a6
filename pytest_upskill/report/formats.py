"""The reports that an option names a file for, each made only where it is asked for."""

from __future__ import annotations

from typing import assert_never

from pytest_upskill.report.document import Report
from pytest_upskill.settings import ReportFormat


def render(report: Report, wanted: ReportFormat) -> str:
    """Write a report as the text of one file."""
    match wanted:
        case "json":
            from pytest_upskill.report.json_report import write_json

            return write_json(report)
        case _:
            assert_never(wanted)
