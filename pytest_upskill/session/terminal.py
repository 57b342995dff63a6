"""Terminal output: header, forecast, the tables of cells, costs and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy

import pytest

from pytest_upskill.answers.batches import HAVE_BATCHES
from pytest_upskill.answers.estimate import CostForecast, ModelEstimate
from pytest_upskill.answers.progress import duration
from pytest_upskill.answers.resources import Resources
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.wording import ANSWER, money, original_cost
from pytest_upskill.models import Completion
from pytest_upskill.project.messages import counted, listed, safe_line
from pytest_upskill.report.document import runs_of
from pytest_upskill.report.notes import (
    notes,
    notes_by_words,
    short_notes,
    statements_not_graded,
)
from pytest_upskill.report.terminal import LEGEND, TRIGGER_LEGEND, table
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.messages import QUIETEST, lines_of, write
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results import Results
from pytest_upskill.session.settings import SETTINGS, Settings
from pytest_upskill.trials.needs import measured_by, skip_lines, skip_reasons
from pytest_upskill.trials.trial import Trial

_ANSWER_LINES = 20
"""Lines of an answer that are printed."""


class Terminal:
    """What is printed through pytest's reporter, with respect to -q, -v and --color."""

    def __init__(self, config: pytest.Config, results: Results) -> None:
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._resources = config.stash[RESOURCES]
        self._results = results
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

    def shorten_failures(self) -> None:
        """Cut the answers of the failures that pytest will print; reports have all of them."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._config.get_verbosity() <= 0:
            failed = reporter.stats.get("failed", [])
            failed[:] = map(_with_short_answers, failed)

    def print_results(self, reporter: pytest.TerminalReporter) -> None:
        """Print a row for each cell, with -v also for each case, and warnings about the session."""
        reasons = self._results.undecided(quiet=self._config.get_verbosity() < 0)
        # As with pytest-cov: -q keeps the tables, -qq drops them.
        if self._config.get_verbosity() > QUIETEST:
            self._figures(reporter, reasons)
            self._triggers(reporter, reasons)
        # Also with -qq: nothing else says why a run without failures is not green.
        for line in reasons:
            write(reporter, line, yellow=True)
        # Also with -q: users must know which files changed.
        for update in self._results.baselines:
            write(reporter, update.text, red=update.refused)

    def print_costs(self, reporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Print the cost of the answers, and problems with recordings."""
        # As the table: also with -q, which many projects have in their addopts.
        if self._config.get_verbosity() > QUIETEST:
            self._costs(reporter)
        if self._config.get_verbosity() >= 0:
            self._notes(reporter)
        cache = self._resources.cache
        recorded = self._resources.bill.answers and cache.mode in {"auto", "refresh"}
        if exitstatus == pytest.ExitCode.INTERRUPTED and recorded:
            text = "the answers so far are recorded: --upskill-cache auto requests only the rest"
            write(reporter, f"upskill: {text}", yellow=True)
        # Also with -q: an answer that is not recorded will cost money again.
        for problem in (*cache.problems, *cache.replacement_lines):
            write(reporter, f"cache: {problem}", yellow=True)

    def _figures(self, reporter: pytest.TerminalReporter, reasons: Sequence[str]) -> None:
        gates = [gate for gate in self._results.gates if not gate.cell.chooses]
        if gates:
            three = any(gate.lift.old_skill for gate in gates)
            arms = "without -> old -> with" if three else "without -> with"
            self._table(reporter, f"skills: {arms}", gates)
        if self._config.get_verbosity() < 0:
            for note in short_notes(gates):
                write(reporter, note)
            return
        if gates:
            write(reporter, LEGEND)
        if self._results.gates:
            for line in skip_lines(self._results.records.skip_reasons()):
                write(reporter, f"skipped: {line}", yellow=True)
        for note in notes(gates, verbose=self._config.get_verbosity() > 0, said=reasons):
            write(reporter, note)

    def _triggers(self, reporter: pytest.TerminalReporter, reasons: Sequence[str]) -> None:
        """Print a line for each skill on each model; -v adds the queries, -q leaves notes out."""
        gates = [gate for gate in self._results.reported if gate.cell.chooses]
        if gates:
            self._table(reporter, "triggers: is the skill chosen?", gates)
        if self._config.get_verbosity() < 0:
            return
        if gates:
            write(reporter, TRIGGER_LEGEND)
        for note in (
            *notes(gates, verbose=False, said=reasons),
            *notes_by_words(self._results.gates),
        ):
            write(reporter, note)

    def _table(self, reporter: pytest.TerminalReporter, title: str, gates: Sequence[Gate]) -> None:
        reporter.section(title, "=", bold=True)
        width = self._config.get_terminal_writer().fullwidth
        for line, gate in table(gates, width, cases=self._config.get_verbosity() > 0):
            red = gate is not None and gate.is_red
            verdict = None if gate is None or red or gate.cell.chooses else gate.verdict
            reporter.line(
                safe_line(line), red=red, green=verdict == "helps", yellow=verdict == "missing data"
            )

    def _costs(self, reporter: pytest.TerminalReporter) -> None:
        runs = list(runs_of(self._results.gates))
        bill = self._resources.bill
        if spent := _cost_summary(bill.answers, [run.completion for run in runs]):
            limit = _default_limit(self._settings, self._resources)
            write(reporter, f"{spent} of {limit}, the limit with agents" if limit else spent)
        if spent := _cost_summary(
            bill.judgements, [run.judgement for run in runs if run.judgement]
        ):
            write(reporter, f"judge: {spent}")
        budget = self._resources.budget
        if budget.stopped:
            line = (
                f"--upskill-max-cost: stopped, as the next request could exceed ${budget.limit:g}"
            )
            write(reporter, line, yellow=True)

    def _notes(self, reporter: pytest.TerminalReporter) -> None:
        gates = self._results.gates
        for line in statements_not_graded(gates):
            write(reporter, line, yellow=True)
        spared = sum(gate.lift.skipped_runs for gate in gates)
        if spared:
            write(
                reporter,
                f"early stop: {counted(spared, 'answer')} {'was' if spared == 1 else 'were'} not "
                "requested, as the verdicts were clear or would not have become clear",
            )
        budget = self._resources.budget
        if budget.assumed:
            assumed = f"{money(budget.assumed)} assumed for requests of unknown cost"
            write(reporter, f"--upskill-max-cost: {assumed}", yellow=True)


_NUMBER = re.compile(
    r"('[^']*'|HTTP \d+|[\w.-]+:\d+)|\breq_\w+|(?<!\w)(?:\d+(?:[.,]\d+)*(?:ms|s|m|h)?)+(?!\w)"
)
"""Numbers that differ between errors with one cause, and before them what does not."""


def _without_numbers(error: str) -> str:
    """Return an error without counts, seconds and ids, but with names, statuses and ports."""
    label, colon, text = error.partition(": ")
    return label + colon + _NUMBER.sub(lambda match: match[1] or "#", text)


def _with_short_answers(report: pytest.TestReport) -> pytest.TestReport:
    """Return a copy of a report with the beginning of each answer."""
    short = copy(report)
    short.sections = [
        (name, _beginning(text) if name == ANSWER else text) for name, text in report.sections
    ]
    return short


def _beginning(answer: str) -> str:
    lines = answer.splitlines(keepends=True)
    hidden = len(lines) - _ANSWER_LINES
    # One hidden line would take as much room as the note about it.
    if hidden <= 1:
        return answer
    return f"{''.join(lines[:_ANSWER_LINES])}[... {hidden} more lines; -v shows them]\n"


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
    trials: Iterable[Trial],
    forecast: CostForecast | None,
) -> list[str]:
    """Return the lines before the first test.

    Args:
        config: Config of this process.
        needs: Lines about how the cases can be measured.
        trials: Trials that need answers.
        forecast: The forecast of their requests; None if no test runs.
    """
    # Unlike the header, pytest prints these lines with -q too.
    if config.get_verbosity() < 0 and not config.stash[SETTINGS].dry_run:
        return []
    lines = [*needs]
    if forecast is not None and forecast.trials:
        lines += _forecast_lines(config, trials, forecast)
    return [wrapped for line in lines for wrapped in lines_of(line, config)]


def _forecast_lines(
    config: pytest.Config, trials: Iterable[Trial], forecast: CostForecast
) -> list[str]:
    settings = config.stash[SETTINGS]
    replay = settings.cache_mode == "replay"
    lines = _request_lines(forecast, replay=replay, by_model=settings.dry_run)
    if settings.batch:
        if config.stash[RESOURCES].batches.enabled and forecast.to_send:
            lines[0] += ", the rest in batches: minutes, at most a day"
        lines += _not_in_batches(trials, early_stop=settings.early_stop)
    if settings.dry_run and not replay:
        prices = config.stash[RESOURCES].prices
        lines += [f"upskill: {prices.problem(model)}" for model in forecast.unpriced]
    if not replay and (limit := _default_limit(settings, config.stash[RESOURCES])):
        lines.append(
            f"upskill: with agents, the run stops at {limit} unless --upskill-max-cost sets "
            "another limit"
        )
    if not replay:
        lines += _not_passed_on(forecast)
    return lines


def _not_passed_on(forecast: CostForecast) -> Iterator[str]:
    """Yield what the tested version of each program sends in vain, which its own may not."""
    agents = {each.model.agent for each in forecast.models if each.model.runs_program}
    if agents:
        # Imported here: most runs have no agents.
        from pytest_upskill.agents.programs import PROGRAMS

        for program in (PROGRAMS[agent] for agent in sorted(agents)):
            if program.left_out:
                yield (
                    f"upskill: {program.name} {program.tested_version}: not passed on in requests: "
                    f"{', '.join(program.left_out)}"
                )


def _default_limit(settings: Settings, resources: Resources) -> str:
    """Return the limit of cost that agents have where the user set none, "" if there is none."""
    limit = resources.budget.limit
    return money(limit) if limit is not None and settings.max_cost is None else ""


def _not_in_batches(trials: Iterable[Trial], *, early_stop: bool) -> list[str]:
    """Return which requests are sent as usual in spite of ``--upskill-batch``."""
    if early_stop:
        why = "early stop needs the answers of each round before the next"
        return [f"upskill: --upskill-batch: {why}: all requests run as usual, at the full price"]
    usual = sum(
        bool(trial.model.agent) or trial.chooses or trial.model.provider not in HAVE_BATCHES
        for trial in trials
    )
    why = "of agents, of triggers, which take turns, and of hosts without batches"
    return (
        [f"upskill: --upskill-batch: {counted(usual, 'trial')} run as usual: {why}"]
        if usual
        else []
    )


def _request_lines(forecast: CostForecast, *, replay: bool, by_model: bool) -> list[str]:
    """Return the forecast: ``90 trials, 90 answers: 40 recorded, 50 to request, …``."""
    trials, answers = counted(forecast.trials, "trial"), counted(forecast.runs, "answer")
    line = f"upskill: {trials}, {answers}: {forecast.recorded} recorded, "
    if replay:
        return [f"{line}{forecast.to_send} missing, $0"]
    paid = [each for each in forecast.models if each.model.is_language_model]
    line += f"{forecast.to_send} to request{_upper_bounds(paid)}"
    if forecast.judgements:
        line += (
            f"; up to {forecast.judgements.answers} to judge{_upper_bounds([forecast.judgements])}"
        )
    if forecast.likely_seconds:
        line += f", in about {duration(forecast.likely_seconds)}"
    if not by_model or len(paid) < 2:  # noqa: PLR2004  one model would only repeat the total
        return [line]
    return [
        line,
        *(
            f"  {each.model.label}: {each.answers} to request{_upper_bounds([each])}"
            for each in paid
        ),
    ]


def _upper_bounds(estimates: Iterable[ModelEstimate]) -> str:
    """Return the upper bounds of tokens and cost of requests to models."""
    estimates = list(estimates)
    if not estimates:
        return ""
    sent = sum(each.max_input_tokens for each in estimates)
    received = sum(each.max_output_tokens for each in estimates)
    max_usd = _sum_if_known(each.max_usd for each in estimates)
    bounds = f", at most {sent:,} tokens in, {received:,} out, {money(max_usd, at_most=True)}"
    likely_usd = _sum_if_known(each.likely_usd for each in estimates)
    return bounds if likely_usd is None else f"{bounds}, likely {money(likely_usd)}"


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
