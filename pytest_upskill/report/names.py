"""Names that options and reports share."""

from __future__ import annotations

from typing import Literal, get_args

ReportFormat = Literal["json", "md", "html", "benchmark-json"]
REPORTS: tuple[ReportFormat, ...] = get_args(ReportFormat)
"""Formats of report files; each has an option for the path."""

Dashboard = Literal["datadog", "codecov"]
DASHBOARDS: tuple[Dashboard, ...] = get_args(Dashboard)
"""Dashboards for which JUnit properties are repeated under other names."""
