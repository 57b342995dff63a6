"""What JUnit XML carries beyond pytest's own: cells as suite properties, answers of failures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

# pytest offers no public way to its XML writer under xdist (pytest#7767); only this module looks.
from _pytest.junitxml import LogXML, bin_xml_escape, xml_key

from pytest_upskill.cells.wording import ANSWER, quoted_lines
from pytest_upskill.report.junit.dashboards import mirrored
from pytest_upskill.report.junit.properties import cell_figures
from pytest_upskill.report.names import Mirror
from pytest_upskill.result import TrialRecord
from pytest_upskill.session.results import Ledger

_LONGEST_MESSAGE = 1000
"""Characters of an attribute that every known reader takes."""


class JUnit:
    """Adds to the XML in the process that writes it; idle without ``--junitxml``."""

    def __init__(self, config: pytest.Config, mirrors: tuple[Mirror, ...], ledger: Ledger) -> None:
        self._config = config
        self._ledger = ledger
        self._mirrors = mirrors
        self._answers: dict[str, list[str]] = {}

    @property
    def _xml(self) -> LogXML | None:
        return self._config.stash.get(xml_key, None)

    # First: pytest's own writer forgets a test once its teardown report is through.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Attach the answers of a failed trial as its ``system-out``, after the failure."""
        if report.when == "call" and report.failed:
            found = [text for name, text in report.sections if name == ANSWER]
            record: TrialRecord | None = getattr(report, "upskill", None)
            self._answers[report.nodeid] = found + _reasoning(record)
        if report.when == "teardown" and self._xml is not None:
            reporter = self._xml.node_reporter(report)
            for element in reporter.nodes:
                _shorten(element)
            for text in self._answers.pop(report.nodeid, ()):
                element = ET.Element("system-out")
                element.text = bin_xml_escape(text)
                reporter.append(element)
            report.user_properties += mirrored(report.user_properties, self._mirrors)

    # First: pytest's own writer closes the file in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the figures of every cell as suite properties."""
        if self._xml is not None:
            for gate in self._ledger.gates:
                cell = f"{gate.cell.title}-{gate.cell.model}"
                for name, value in cell_figures(gate):
                    self._xml.add_global_property(f"upskill.{name}[{cell}]", value)


def _reasoning(record: TrialRecord | None) -> list[str]:
    """Quote what a model wrote before the answers that missed, each once."""
    runs = record.result.runs if record else ()
    missed = dict.fromkeys(run.completion.reasoning for run in runs if not run.passed)
    return [f"reasoning:\n{quoted_lines(text)}" for text in missed if text]


def _shorten(element: ET.Element) -> None:
    """Keep the first line of a message, which stands alone; pytest puts a whole report there."""
    message = element.get("message")
    if message is not None and element.text:
        element.set("message", message.partition("\n")[0][:_LONGEST_MESSAGE])
