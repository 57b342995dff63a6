"""What leaves a process in reports and logs: results, without keys and control characters."""

import logging
from collections.abc import Callable, Generator, Iterator
from functools import cache, partial
from typing import Any

import pytest
from pydantic import TypeAdapter

from pytest_upskill.figures.wording import ANSWER, quoted_lines, shorten
from pytest_upskill.models.hosts import HOSTS
from pytest_upskill.project.messages import safe
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.report.trajectory import last_steps
from pytest_upskill.session.items import COLLECTORS, TrialItem
from pytest_upskill.session.results import TrialRecord

_SDKS = frozenset({"httpcore2", "httpx2", *(host.wire for host in HOSTS)})
"""Loggers that log what servers sent."""


class Outgoing:
    """Plugin that attaches results to reports, also between processes, and cleans their text."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    # First, so outermost: text that other plugins add is cleaned too.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach a trial's result to its report, and clean the report."""
        report = yield
        if isinstance(item, TrialItem):
            _attach_result(report, item)
            self._clean(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Clean a collector's report."""
        report = yield
        if isinstance(collector, COLLECTORS):
            self._clean(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Serialize the result as JSON text: execnet needs ten times as long for nested values."""
        data = yield
        if data and data.get("upskill") is not None:
            data["upskill"] = _records().dump_json(data["upskill"]).decode()
        return data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self) -> Generator[None, Any, Any]:
        """Parse the result that a worker serialized."""
        report = yield
        if getattr(report, "upskill", None) is not None:
            report.upskill = _records().validate_json(report.upskill)
        return report

    def _clean(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        report.longrepr = cleaned(report.longrepr, self._text)
        report.sections = cleaned(report.sections, self._text)

    def _text(self, text: str) -> str:
        return safe(self._redactor.redact(text))


def _attach_result(report: Any, item: TrialItem) -> None:
    """Attach the result to the report of the phase that decides the trial."""
    if report.when == "call" or (report.when == "setup" and report.failed):
        report.upskill = item.record()
        if report.when == "call":
            # Not through the item: there, sections of earlier attempts would accumulate.
            report.sections += _sections(item)
    elif report.skipped and not hasattr(report, "wasxfail"):
        # A plain tuple: workers of pytest-xdist can send no other.
        report.upskill_skipped = (*item.cell, item.trial.case.id)
        report.upskill = item.record()


_BEGINNING = 1_000
"""Characters of a long answer that a terminal shows."""


def _sections(item: TrialItem) -> Iterator[tuple[str, str]]:
    """Yield each different answer that did not pass, and what an agent did, with their titles."""
    runs = item.result.runs if item.result else ()
    missed = [(number, run.completion) for number, run in enumerate(runs, 1) if not run.passed]
    verbose = item.config.get_verbosity() > 0
    for text in filter(str.strip, dict.fromkeys(completion.text for _, completion in missed)):
        if verbose or len(text) <= _BEGINNING:
            yield ANSWER, quoted_lines(text)
        else:
            yield f"{ANSWER}: -v shows all of it", quoted_lines(shorten(text, _BEGINNING))
    for number, completion in missed:
        if completion.agent_run:
            title = f"last steps of the agent in run {number}"
            yield title, f"{last_steps(completion.agent_run)}\n"
            break


@cache
def _records() -> TypeAdapter[TrialRecord]:
    """Return what serializes results; only runs with workers need it, and it is slow to make."""
    return TypeAdapter(TrialRecord)


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a value of a report with every text cleaned.

    Strings and sequences are copied, pytest's own objects changed in place.

    Args:
        value: Part of a report, such as ``longrepr``.
        clean: Function that cleans one text.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple | list):
        return type(value)(cleaned(part, clean) for part in value)
    if type(value).__module__.startswith("_pytest."):
        for name, part in vars(value).items():
            setattr(value, name, cleaned(part, clean))
    return value


def redact_logs(redactor: Redactor) -> Callable[[], None]:
    """Redact keys in all logs, and remove control characters from the SDKs' logs.

    This replaces the factory of log records: a filter would have to be added to every logger.

    Returns:
        Function that ends it.
    """
    original_factory = logging.getLogRecordFactory()

    def make_record(name: str, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = original_factory(name, *args, **kwargs)
        message = _message(record)
        text = redactor.redact(message)
        if name.partition(".")[0] in _SDKS:
            text = safe(text)
            if record.exc_info:
                trace = logging.Formatter().formatException(record.exc_info)
                record.exc_text = safe(redactor.redact(trace))
        if text != message:
            record.msg, record.args = text, None
        return record

    logging.setLogRecordFactory(make_record)
    return partial(logging.setLogRecordFactory, original_factory)


def _message(record: logging.LogRecord) -> str:
    """Return the message; if its arguments do not fit its format, both as they are."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args}"
