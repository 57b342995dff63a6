"""Names that options and reports share."""

from __future__ import annotations

from typing import Literal, get_args

ReportFormat = Literal["json", "md", "html", "benchmark-json"]
REPORTS: tuple[ReportFormat, ...] = get_args(ReportFormat)
"""Reports that options name a file for."""

Mirror = Literal["datadog", "codecov"]
MIRRORS: tuple[Mirror, ...] = get_args(Mirror)
"""Dashboards for which JUnit properties are repeated."""
