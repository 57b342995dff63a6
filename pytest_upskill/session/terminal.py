"""Terminal output: header, forecast, the tables of cells, costs and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest

from pytest_upskill.answers.budget import LOWER_COST
from pytest_upskill.answers.estimate import CostForecast, ModelEstimate
from pytest_upskill.answers.progress import duration
from pytest_upskill.answers.resources import Resources
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.wording import money, original_cost
from pytest_upskill.models import Completion
from pytest_upskill.project.messages import counted, listed, safe_line
from pytest_upskill.report.document import runs_of
from pytest_upskill.report.notes import (
    about_offline,
    notes,
    short_notes,
    statements_not_graded,
)
from pytest_upskill.report.terminal import LEGEND, TRIGGER_LEGEND, table
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.messages import QUIETEST, lines_of, write
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import SETTINGS, Settings
from pytest_upskill.trials.needs import measured_by, skip_lines, skip_reasons


class Terminal:
    """What is printed through pytest's reporter, with respect to -q, -v and --color."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._resources = config.stash[RESOURCES]
        self._first_with_error: dict[str, str] = {}
        """The first node id with an error, by the error without numbers."""

    def header(self) -> list[str]:
        """Return the models and the number of runs."""
        models = ", ".join(f"{model.label} ({model.resolved})" for model in self._settings.models)
        single = ", ".join(model.label for model in self._settings.single_runs)
        why = f"; 1 for {single}, as further runs would be copies"
        baseline = self._settings.baseline_runs
        without = f", {baseline} without the skill" if baseline else ""
        runs = f"{self._settings.runs}{without}{why if single else ''}"
        return lines_of(f"upskill: {models}; runs: {runs}", self._config)

    def status(self, report: pytest.TestReport) -> object:
        """Return letters and words of our own for baselines and repeated errors."""
        if report.when != "setup" or not report.failed or not hasattr(report, "upskill"):
            return _baseline_status(report)
        # Not longreprtext: under pytest-xdist it begins with the worker's name.
        cause = _without_numbers(str(report.longrepr))
        first = self._first_with_error.setdefault(cause, report.nodeid)
        # Those of another category are not printed in full.
        return None if first == report.nodeid else ("more with the same cause", "E", "ERROR")

    def announce_gates(self) -> None:
        """Print what the tests are that follow: only -v prints their names."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._config.get_verbosity() == 0:
            reporter.ensure_newline()
            writer = self._config.get_terminal_writer()
            # With pytest-xdist, letters have no path before them.
            if writer.width_of_current_line:
                writer.line()
            writer.write("gates:" if reporter.showfspath else "gates: ")

    def print_results(
        self,
        reporter: pytest.TerminalReporter,
        gates: Sequence[Gate],
        skipped: Iterable[str],
        reasons: Sequence[str],
    ) -> None:
        """Print a row for each cell, with -v also for each case, and warnings about the session.

        Args:
            reporter: pytest's reporter.
            gates: The gate of each cell.
            skipped: Why cases were skipped, one reason for each.
            reasons: Why nothing or not everything was measured.
        """
        # As with pytest-cov: -q keeps the tables, -qq drops them.
        if self._config.get_verbosity() > QUIETEST:
            self._lifts(reporter, [gate for gate in gates if not gate.cell.chooses], reasons)
            if gates and self._config.get_verbosity() >= 0:
                for line in skip_lines(skipped):
                    write(reporter, f"skipped: {line}", yellow=True)
                for line in about_offline(gates):
                    write(reporter, line)
            self._triggers(reporter, [gate for gate in gates if gate.cell.chooses], reasons)
        # Also with -qq: nothing else says why a run without failures is not green.
        for line in reasons:
            write(reporter, line, yellow=True)

    def print_costs(
        self, reporter: pytest.TerminalReporter, gates: Sequence[Gate], exitstatus: int
    ) -> None:
        """Print the cost of the answers, and problems with recordings."""
        # As the table: also with -q, which many projects have in their addopts.
        if self._config.get_verbosity() > QUIETEST:
            self._costs(reporter, gates)
        if self._config.get_verbosity() >= 0:
            for line in statements_not_graded(gates):
                write(reporter, line, yellow=True)
        cache = self._resources.cache
        recorded = self._resources.bill.answers and cache.mode in {"auto", "refresh"}
        if exitstatus == pytest.ExitCode.INTERRUPTED and recorded:
            text = "the answers so far are recorded: --upskill-cache auto requests only the rest"
            write(reporter, f"upskill: {text}", yellow=True)
        # Also with -q: an answer that is not recorded will cost money again.
        for problem in (*cache.problems, *cache.replacement_lines):
            write(reporter, f"cache: {problem}", yellow=True)

    def _lifts(
        self, reporter: pytest.TerminalReporter, gates: Sequence[Gate], reasons: Sequence[str]
    ) -> None:
        if gates:
            three = any("old_skill" in gate.cell.lift.arms for gate in gates)
            arms = "without -> old -> with" if three else "without -> with"
            self._table(reporter, f"skills: {arms}", gates)
        if self._config.get_verbosity() < 0:
            lines = [*short_notes(gates)]
        else:
            verbose = self._config.get_verbosity() > 0
            lines = [LEGEND] if gates else []
            lines += notes(gates, verbose=verbose, said=reasons)
        for line in lines:
            write(reporter, line)

    def _triggers(
        self, reporter: pytest.TerminalReporter, gates: Sequence[Gate], reasons: Sequence[str]
    ) -> None:
        """Print a line for each skill on each model; -v adds the queries, -q leaves notes out."""
        measured = [gate for gate in gates if not gate.cell.is_by_words]
        if measured:
            self._table(reporter, "triggers: is the skill chosen?", measured)
        if self._config.get_verbosity() >= 0:
            lines = [TRIGGER_LEGEND] if measured else []
            lines += notes(measured, verbose=False, said=reasons)
            for line in lines:
                write(reporter, line)

    def _table(self, reporter: pytest.TerminalReporter, title: str, gates: Sequence[Gate]) -> None:
        reporter.section(title, "=", bold=True)
        width = self._config.get_terminal_writer().fullwidth
        for line, gate in table(gates, width, cases=self._config.get_verbosity() > 0):
            red = gate is not None and gate.is_red
            verdict = None if gate is None or red or gate.cell.chooses else gate.verdict
            reporter.line(
                safe_line(line), red=red, green=verdict == "helps", yellow=verdict == "missing data"
            )

    def _costs(self, reporter: pytest.TerminalReporter, gates: Sequence[Gate]) -> None:
        runs = list(runs_of(gates))
        bill, budget = self._resources.bill, self._resources.budget
        if spent := _cost_summary(bill.answers, [run.completion for run in runs]):
            limit = _default_limit(self._settings, self._resources)
            write(reporter, f"{spent} of {limit}, the limit with agents" if limit else spent)
        judgements = [run.judgement for run in runs if run.judgement]
        if spent := _cost_summary(bill.judgements, judgements):
            write(reporter, f"judge: {spent}")
        lines = []
        if budget.stopped:
            lines.append(f"stopped, as the next request {budget.exceeded}")
        if budget.assumed:
            lines.append(f"{money(budget.assumed)} assumed for requests of unknown cost")
        for line in lines:
            write(reporter, f"--upskill-max-cost: {line}", yellow=True)


_NUMBER = re.compile(
    r"('[^']*'|HTTP \d+|[\w.-]+:\d+)|\breq_\w+|(?<!\w)(?:\d+(?:[.,]\d+)*(?:ms|s|m|h)?)+(?!\w)"
)
"""Numbers that differ between errors with one cause, and before them what does not."""


def _without_numbers(error: str) -> str:
    """Return an error without counts, seconds and ids, but with names, statuses and ports."""
    label, colon, text = error.partition(": ")
    return label + colon + _NUMBER.sub(lambda match: match[1] or "#", text)


def _baseline_status(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Return a letter and word of its own for a trial that never fails, counted as passed."""
    record = getattr(report, "upskill", None)
    if record is None or not report.passed or record.result.decides:
        return None
    # Any category but "passed" would make pytest's last line yellow.
    if record.result.passed:
        return "passed", "+", ("BASELINE PASS", {"cyan": True})
    return "passed", "-", ("BASELINE FAIL", {"cyan": True})


def needs_lines(items: Iterable[pytest.Item]) -> list[str]:
    """Return how the collected cases can be measured, and what those need that are skipped."""
    trials = [item for item in items if isinstance(item, TrialItem)]
    if not trials:
        return []
    keys = [(item.case_path, item.trial.case.id, item.trial.chooses) for item in trials]
    cases = {key[:2]: item.trial.case for key, item in zip(keys, trials, strict=True)}
    reasons = [item.why_skipped for item in trials]
    skipped = [(key, reason) for key, reason in zip(keys, reasons, strict=True) if reason]
    measured = {key for key, reason in zip(keys, reasons, strict=True) if not reason}
    ways = measured_by(cases.values()) or "none can be measured"
    skills = {item.case_path: item.trial.skill for item in trials}
    read = [f"{path} (as {skill.read_as})" for path, skill in skills.items() if skill.read_as]
    return [
        *([f"upskill: read by their shape: {listed(read)}"] if read else []),
        f"upskill: {counted(len(cases), 'case')}: {ways}",
        *(f"upskill: {line}" for line in skip_lines(skip_reasons(skipped, measured), len(cases))),
    ]


def lines_before_the_run(
    config: pytest.Config,
    needs: Sequence[str],
    forecast: CostForecast | None,
) -> list[str]:
    """Return the lines before the first test.

    Args:
        config: Config of this process.
        needs: Lines about how the cases can be measured.
        forecast: The forecast of their requests; None if no test runs.
    """
    # Unlike the header, pytest prints these lines with -q too.
    if config.get_verbosity() < 0 and not config.stash[SETTINGS].dry_run:
        return []
    lines = [*needs]
    if forecast is not None and forecast.trials:
        lines += _forecast_lines(config, forecast)
    return [wrapped for line in lines for wrapped in lines_of(line, config)]


def _forecast_lines(config: pytest.Config, forecast: CostForecast) -> list[str]:
    settings = config.stash[SETTINGS]
    replay = settings.cache_mode == "replay"
    lines = _request_lines(forecast, replay=replay, by_model=settings.dry_run)
    if config.stash[RESOURCES].batches.enabled and forecast.to_send:
        lines[0] += (
            ", in batches, but for agents, triggers and hosts without them: minutes, at most a day"
        )
    if settings.dry_run and not replay:
        prices = config.stash[RESOURCES].prices
        lines += [f"upskill: {prices.problem(model)}" for model in forecast.unpriced]
        at_most = _sum_if_known(each.max_usd for each in forecast.all_models)
        if at_most is not None and settings.max_cost is not None and at_most > settings.max_cost:
            stop = f"at its maximum the run would stop at {money(settings.max_cost)}"
            lines.append(f"upskill: --upskill-max-cost: {stop}: {LOWER_COST}")
    if not replay and (limit := _default_limit(settings, config.stash[RESOURCES])):
        lines.append(
            f"upskill: with agents, the run stops at {limit} unless --upskill-max-cost sets "
            "another limit"
        )
    return lines


def _default_limit(settings: Settings, resources: Resources) -> str:
    """Return the limit of cost that agents have where the user set none, "" if there is none."""
    limit = resources.budget.limit
    return money(limit) if limit is not None and settings.max_cost is None else ""


def _request_lines(forecast: CostForecast, *, replay: bool, by_model: bool) -> list[str]:
    """Return the forecast: ``90 trials, 90 answers: 40 recorded, 50 to request, …``."""
    trials, answers = counted(forecast.trials, "trial"), counted(forecast.runs, "answer")
    line = f"upskill: {trials}, {answers}: {forecast.recorded} recorded, "
    if replay:
        return [f"{line}{forecast.to_send} missing, $0"]
    paid = [each for each in forecast.models if each.model.is_language_model]
    line += f"{forecast.to_send} to request{_costs_of(paid)}"
    if forecast.judgements:
        line += f"; up to {forecast.judgements.answers} to judge{_costs_of([forecast.judgements])}"
    if forecast.likely_seconds:
        line += f", in about {duration(forecast.likely_seconds)}"
    if not by_model or len(paid) < 2:  # noqa: PLR2004  one model would only repeat the total
        return [line]
    return [
        line,
        *(f"  {each.model.label}: {each.answers} to request{_costs_of([each])}" for each in paid),
    ]


def _costs_of(estimates: Iterable[ModelEstimate]) -> str:
    """Return the maximum and the likely cost of requests to models."""
    estimates = list(estimates)
    if not estimates:
        return ""
    max_usd = _sum_if_known(each.max_usd for each in estimates)
    likely_usd = _sum_if_known(each.likely_usd for each in estimates)
    if max_usd is None or likely_usd is None:
        return f", {money(None)}"
    return f", at most {money(max_usd, at_most=True)}, likely {money(likely_usd)}"


def _sum_if_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None if one of them is unknown."""
    known = [*costs]
    return None if None in known else sum(cost for cost in known if cost is not None)


def _cost_summary(requested: Sequence[Completion], completions: Iterable[Completion]) -> str:
    """Return what this session's requests cost, and what the replayed answers had cost."""
    replayed = [each for each in completions if each.replayed]
    retried = sum(each.attempts > 1 for each in requested)
    parts = []
    if requested:
        parts.append(f"requested {counted(len(requested), 'answer')}: {_cost(requested)}")
    if replayed:
        answers = counted(len(replayed), "answer")
        known = any(each.cost_usd is not None for each in replayed)
        cost = f"{_cost(replayed)} when recorded" if known else original_cost(None)
        parts.append(f"replayed {answers}: {cost}")
    if retried:
        parts.append(f"{counted(retried, 'request')} {'was' if retried == 1 else 'were'} retried")
    return "; ".join(parts)


def _cost(completions: Iterable[Completion]) -> str:
    costs = [each.cost_usd for each in completions]
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known) if known else 0
    return money(sum(known) if known else None) + (f" and n/a for {unknown}" if unknown else "")
