"""Terminal output: header, forecast, the tables of cells, costs and notes."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

from pytest_upskill.answers.estimate import CostForecast, ModelEstimate
from pytest_upskill.answers.progress import duration
from pytest_upskill.answers.resources import Resources
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.presentation import arms_of
from pytest_upskill.figures.wording import money, original
from pytest_upskill.models import Completion
from pytest_upskill.models.completion import sum_if_known
from pytest_upskill.project.messages import agreeing, counted, listed, safe_line, without_numbers
from pytest_upskill.report.document import Report, runs_of
from pytest_upskill.report.notes import about_offline, next_steps, notes, statements_not_graded
from pytest_upskill.report.terminal import LEGEND, TRIGGER_LEGEND, table
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.messages import QUIETEST, begin_line, lines_of, write
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import SETTINGS, Settings
from pytest_upskill.trials.needs import measured_by, skip_lines, skip_reasons
from pytest_upskill.trials.trial import run_count


class Terminal:
    """Plugin that has what is printed, with respect to -q, -v and --color."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._resources = config.stash[RESOURCES]
        self._first_with_error: dict[str, str] = {}
        """The first node id with an error, by the error without numbers."""

    def pytest_report_header(self) -> list[str]:
        """Return the models and the number of runs."""
        models, runs = self._settings.models, self._settings.runs
        names = [f"{model.label} ({model.resolved})" for model in models]
        line = f"upskill: {', '.join(names)}; runs: {runs}"
        if baseline := self._settings.baseline_runs:
            line += f", {baseline} without the skill"
        if single := [model.label for model in models if run_count(model, runs) < runs]:
            line += f"; 1 for {', '.join(single)}, as further runs would be copies"
        return lines_of(line, self._config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> object:
        """Return letters and words of our own for baselines and repeated errors."""
        if report.when != "setup" or not report.failed or not hasattr(report, "upskill"):
            return _baseline_status(report)
        # Not longreprtext: under pytest-xdist it begins with the worker's name.
        cause = without_numbers(str(report.longrepr))
        first = self._first_with_error.setdefault(cause, report.nodeid)
        # Those of another category are not printed in full.
        return None if first == report.nodeid else ("more with the same cause", "E", "ERROR")

    def announce_gates(self) -> None:
        """Print what the tests are that follow: only -v prints their names."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._config.get_verbosity() == 0:
            begin_line(reporter)
            reporter.write("gates:" if reporter.showfspath else "gates: ")

    def tell_the_past(self, gates: Iterable[Gate]) -> None:
        """Add to the report of each failed case how it did with the old skill."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        of_cells = {gate.cell.key: gate for gate in gates}
        for failed in reporter.stats.get("failed", ()) if reporter else ():
            record = getattr(failed, "upskill", None)
            if record is None or (gate := of_cells.get(record.key)) is None:
                continue
            if gate.comparison and (past := gate.past.get(record.result.case)):
                told = f"passed {past.was} runs with the skill at {gate.comparison.base}"
                failed.sections.append(("before", told))

    def print_results(
        self, reporter: pytest.TerminalReporter, report: Report, reasons: Sequence[str]
    ) -> None:
        """Print a row for each cell, with -v also for each case, and warnings about the session.

        Args:
            reporter: pytest's reporter.
            report: The cells and the session.
            reasons: Why nothing or not everything was measured.
        """
        verbosity = self._config.get_verbosity()
        # As with pytest-cov: -q keeps the tables, -qq drops them.
        if verbosity > QUIETEST and report.gates:
            for title, gates, legend in (
                (f"skills: {arms_of(report.lifts)}", report.lifts, LEGEND),
                ("triggers: is the skill chosen?", report.triggers, TRIGGER_LEGEND),
            ):
                self._print_table(reporter, title, gates, legend)
                for note in notes(gates, said=reasons):
                    write(reporter, note)
            for line in (*about_offline(report), *next_steps(report)):
                write(reporter, line)
            for session in report.sessions:
                for line in session.skipped:
                    write(reporter, f"skipped: {line}", yellow=True)
        # Also with -qq: nothing else says why a run without failures is not green.
        for line in reasons:
            write(reporter, line, yellow=True)

    def print_costs(
        self, reporter: pytest.TerminalReporter, gates: Sequence[Gate], exitstatus: int
    ) -> None:
        """Print the cost of the answers, and problems with recordings."""
        # As the table: also with -q, which many projects have in their addopts.
        if self._config.get_verbosity() > QUIETEST:
            self._print_spent(reporter, gates)
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

    def _print_table(
        self, reporter: pytest.TerminalReporter, title: str, gates: Sequence[Gate], legend: str
    ) -> None:
        """Print a row for each cell; -v adds the cases, -q leaves the legend out."""
        if not gates:
            return
        verbosity = self._config.get_verbosity()
        reporter.section(title, "=", bold=True)
        width = self._config.get_terminal_writer().fullwidth
        for line, gate in table(gates, width, cases=verbosity > 0):
            red = gate is not None and gate.is_red
            verdict = None if gate is None or red or gate.cell.chooses else gate.verdict
            reporter.line(
                safe_line(line), red=red, green=verdict == "helps", yellow=verdict == "missing data"
            )
        if verbosity >= 0:
            write(reporter, legend)

    def _print_spent(self, reporter: pytest.TerminalReporter, gates: Sequence[Gate]) -> None:
        runs = list(runs_of(gates))
        bill, budget = self._resources.bill, self._resources.budget
        if spent := _spent(bill.answers, [run.completion for run in runs]):
            limit = _default_limit(self._settings, self._resources)
            write(reporter, f"{spent} of {limit}, the limit with agents" if limit else spent)
        judgements = [run.judgement for run in runs if run.judgement]
        if spent := _spent(bill.judgements, judgements):
            write(reporter, f"judge: {spent}")
        if budget.assumed and not budget.stopped:
            guess = f"{money(budget.assumed)} assumed for requests of unknown cost"
            write(reporter, f"--upskill-max-cost: {guess}", yellow=True)


def _baseline_status(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Return a letter and word of its own for a trial that never fails, counted as passed."""
    record = getattr(report, "upskill", None)
    if record is None or not report.passed or record.result.decides:
        return None
    # Any category but "passed" would make pytest's last line yellow.
    arm = "OFFLINE" if record.result.arm == "trigger" else "BASELINE"
    letter, outcome = ("+", "PASS") if record.result.passed else ("-", "FAIL")
    return "passed", letter, (f"{arm} {outcome}", {"cyan": True})


def needs_lines(items: Iterable[pytest.Item]) -> list[str]:
    """Return how the collected cases can be measured, and what those need that are skipped."""
    trials = {
        (item.cell, item.trial.case.id): item for item in items if isinstance(item, TrialItem)
    }
    cases = {(cell.path, case): item.trial.case for (cell, case), item in trials.items()}
    if not cases:
        return []
    named = {item.cell.path: item.trial.skill.read_as for item in trials.values()}
    read = [f"{path} (as {tool})" for path, tool in named.items() if tool]
    skipped = {key: item.why_skipped for key, item in trials.items() if item.why_skipped}
    ways = measured_by(cases.values()) or "none can be measured"
    lines = [f"read by their shape: {listed(read)}"] if read else []
    lines.append(f"{counted(len(cases), 'case')}: {ways}")
    lines += skip_lines(skip_reasons(skipped, trials.keys() - skipped), len(cases))
    return [f"upskill: {line}" for line in lines]


def lines_before_the_run(
    config: pytest.Config, needs: Iterable[str], forecast: CostForecast
) -> list[str]:
    """Return the lines before the first test.

    Args:
        config: Config of this process.
        needs: Lines about how the cases can be measured.
        forecast: The forecast of their requests; of no trial if no test runs.
    """
    settings = config.stash[SETTINGS]
    # Unlike the header, pytest prints these lines with -q too.
    if config.get_verbosity() < 0 and not settings.dry_run:
        return []
    lines = [*needs]
    if forecast.trials:
        lines += _plan(forecast, settings, config.stash[RESOURCES])
    return [wrapped for line in lines for wrapped in lines_of(line, config)]


def _plan(forecast: CostForecast, settings: Settings, resources: Resources) -> Iterator[str]:
    """Yield the forecast: ``90 trials, 90 answers: 40 recorded, 50 to request, …``."""
    trials, answers = counted(forecast.trials, "trial"), counted(forecast.runs, "answer")
    equal = f"{forecast.equal} equal to others, " if forecast.equal else ""
    line = f"upskill: {trials}, {answers}: {forecast.recorded} recorded, {equal}"
    if settings.cache_mode == "replay":
        yield f"{line}{forecast.to_send} missing, $0"
        return
    paid = [each for each in forecast.models if each.model.is_language_model]
    line += f"{forecast.to_send} to request{_forecast_costs(paid)}"
    if judged := forecast.judgements:
        line += f"; up to {judged.answers} to judge{_forecast_costs([judged])}"
    if forecast.likely_seconds:
        line += f", in about {duration(forecast.likely_seconds)}"
    if resources.batches.enabled and forecast.to_send:
        line += ", in batches, but for agents, triggers and hosts without them: minutes, at most "
        line += "a day"
    yield line
    if settings.dry_run:
        for each in paid if len(paid) > 1 else ():
            yield f"  {each.model.label}: {each.answers} to request{_forecast_costs([each])}"
        for model in forecast.unpriced:
            yield f"upskill: {resources.budget.prices.problem(model)}"
    if limit := _default_limit(settings, resources):
        yield (
            f"upskill: with agents, the run stops at {limit} unless --upskill-max-cost sets "
            "another limit"
        )


def _default_limit(settings: Settings, resources: Resources) -> str:
    """Return the limit of cost that agents have where the user set none, "" if there is none."""
    limit = resources.budget.limit
    return money(limit) if limit is not None and settings.max_cost is None else ""


def _forecast_costs(estimates: Sequence[ModelEstimate]) -> str:
    """Return the maximum and the likely cost of requests to models."""
    if not estimates:
        return ""
    max_usd = sum_if_known(each.max_usd for each in estimates)
    likely_usd = sum_if_known(each.likely_usd for each in estimates)
    if max_usd is None or likely_usd is None:
        return f", {money(None)}"
    return f", at most {money(max_usd, at_most=True)}, likely {money(likely_usd)}"


def _spent(requested: Sequence[Completion], completions: Iterable[Completion]) -> str:
    """Return what this session's requests cost, and what the replayed answers had cost."""
    parts = []
    if requested:
        parts.append(f"requested {counted(len(requested), 'answer')}: {_cost_of(requested)}")
    if replayed := [each for each in completions if each.replayed]:
        parts.append(f"replayed {counted(len(replayed), 'answer')}: {original(_cost_of(replayed))}")
    if retried := sum(each.attempts > 1 for each in requested):
        parts.append(f"{counted(retried, 'request')} {agreeing('was', retried)} retried")
    return "; ".join(parts)


def _cost_of(completions: Sequence[Completion]) -> str:
    known = [each.cost_usd for each in completions if each.cost_usd is not None]
    unknown = len(completions) - len(known)
    total = money(sum(known) if known else None)
    return f"{total} and n/a for {unknown}" if known and unknown else total
