"""Notes about cells, printed below the table."""

from collections.abc import Collection, Iterator, Sequence

from pytest_upskill import stats
from pytest_upskill.checks.judge import GIVEN_UP, UNUSABLE, cause_of
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate, tipping_point
from pytest_upskill.figures.lift import Lift
from pytest_upskill.figures.trial_group import ARM_NAMES, CURE_OF_CUTS
from pytest_upskill.figures.triggers import BY_WORDS, DESCRIBE, lost_queries
from pytest_upskill.figures.wording import judge_accuracy, percent, rate_text
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import agreeing, counted, listed
from pytest_upskill.report.document import Report
from pytest_upskill.report.exit_code import unrecorded_trials, why_undecided
from pytest_upskill.trials.needs import unmeasured_lines

_AGENT = "write an agent before the model, as in loop:MODEL"

_SMALLEST_CONTEXT = 1000
"""Tokens of the smallest context that a server may have; fewer are a wrong count."""


def notes(gates: Sequence[Gate], *, said: Collection[str] = ()) -> Iterator[str]:
    """Yield the notes about all cells of one measure.

    Args:
        gates: Decision about each cell.
        said: Other lines about these cells; what they end with is not repeated.
    """
    names = grouped(
        (note, gate.cell.name)
        for gate in gates
        for note in notes_of(gate)
        # The report of a failed gate is printed with the failures.
        if gate.outcome != "failed" or note not in gate.report
    )
    lines = (f"{listed(cells)}: {note}" for note, cells in names.items())
    yield from (line for line in lines if not any(other.endswith(line) for other in said))
    lifts = [gate for gate in gates if not gate.cell.chooses]
    yield from _too_few(lifts)
    yield from unusable_judgements(lifts)
    if any(gate.cell.lift.uncalibrated and gate.cell.labels is None for gate in lifts):
        yield (
            "judge: nobody has checked it, so it cannot show that a skill has no effect: write a "
            "report with --upskill-json, then label some of its answers: pytest-upskill judge draw "
            "REPORT"
        )


def all_notes(report: Report) -> list[str]:
    """Return the notes about a whole report, one line each, without repeats."""
    lines = about_the_whole(report)
    lines += (line for session in report.sessions for line in session.warnings)
    measures = (report.lifts, report.triggers)
    noted = (note for of in measures for note in notes(of, said=lines))
    return [*dict.fromkeys([*lines, *noted])]


def _too_few(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield what would decide about cells that have too few runs: more of them, or more cases."""
    lifts = [
        gate.cell.lift
        for gate in gates
        if gate.cell.lift.lacks_runs and not gate.regressed and gate.outcome != "skipped"
    ]
    if more := [lift.more_runs for lift in lifts if lift.more_runs]:
        runs = max(each.with_skill for each in more)
        without = max(each.without_skill for each in more)
        baseline = f" --upskill-baseline-runs {without}" if without != runs else ""
        chance = min(each.chance for each in more)
        models = ", ".join(dict.fromkeys(lift.cell.model for lift in lifts if lift.more_runs))
        yield (
            f"too few runs on {models}: --upskill-runs {runs}{baseline} would be "
            f"enough with a probability of {percent(chance)} %"
        )
    if others := [lift.cell for lift in lifts if not lift.more_runs]:
        names = ", ".join(dict.fromkeys(cell.model for cell in others))
        rerun = ", or raise --upskill-runs where answers differ from run to run"
        copies = all(cell.is_offline for cell in others)
        yield f"too few runs on {names}: add cases{'' if copies else rerun}"


def about_the_whole(report: Report) -> list[str]:
    """Return what was not measured, compared or graded, one line each, without repeats."""
    lines = [
        *_unrecorded(report),
        *why_undecided(report),
        *(line for session in report.sessions for line in session.without_trials),
        *(unmeasured_lines(report.unmeasured_skills) if report.gates else ()),
        *statements_not_graded(report.lifts),
        *about_offline(report),
    ]
    skipped = (line for session in report.sessions for line in session.skipped)
    lines += [f"skipped: {line}" for line in skipped if not any(line in each for each in lines)]
    return [*dict.fromkeys(lines)]


_OF_CASES = (
    "next: read the answers of the failed cases, and correct the skill or the case; min_pass_rate "
    "sets how many runs must pass"
)
"""Advice about cases that failed."""


def next_steps(report: Report) -> Iterator[str]:
    """Yield advice about the failed cases, and about the failed queries."""
    failed = report.failed_cases
    # A failed gate has advice of its own.
    if any(not gate.cell.chooses and gate.outcome != "failed" for gate, _ in failed):
        yield _OF_CASES
    if any(gate.cell.chooses for gate, _ in failed):
        lost = listed(lost_queries([gate.cell for gate in report.gates]))
        how = f"{DESCRIBE}, or correct the query; min_pass_rate sets how many runs must be right"
        yield ": ".join(filter(None, ("next", lost, how)))


def _unrecorded(report: Report) -> Iterator[str]:
    """Yield how to record what a replay lacks."""
    if trials := unrecorded_trials(report):
        yield f"{counted(len(trials), 'trial')} not recorded: {trials[0].errors[0]}"


def about_offline(report: Report) -> Iterator[str]:
    """Yield what the results of ``offline`` mean, which is no model."""
    cells = [gate.cell for gate in report.gates if gate.cell.is_offline]
    if any(cell.lift.deciding for cell in cells):
        where = "" if len(cells) == len(report.gates) else " on offline"
        what = "offline quotes the skill, so a case is better if the skill has its facts"
        yield f"no model was asked{where}: {what}"
    if any(cell.chooses for cell in cells):
        yield BY_WORDS


def statements_not_graded(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield how many statements had no judge, and how many no answer can show."""
    ungraded = sum({gate.cell.path: gate.cell.ungraded for gate in gates}.values())
    undecidable = {
        (gate.cell.path, trial.case, statement)
        for gate in gates
        for trial in gate.cell.trials
        for statement in trial.undecidable
    }
    for count, what in (
        (ungraded, "ungraded: name a model with --upskill-judge"),
        (len(undecidable), f"left out of every arm, as an answer cannot show them: {_AGENT}"),
    ):
        if count:
            yield f"judge: {counted(count, 'statement')} {agreeing('is', count)} {what}"


def notes_of(gate: Gate) -> Iterator[str]:
    """Yield the notes about one cell, without its name."""
    cell, lift = gate.cell, gate.cell.lift
    yield from ending_notes(cell)
    if lift.agent is not None:
        yield from lift.agent.remarks
    yield from _on_the_gate(gate)
    if gate.comparison is not None:
        open_sentence = gate.text if gate.outcome == "skipped" else ""
        yield from (line for line in gate.comparison.remarks if line not in open_sentence)
    if cell.chooses:
        yield from cell.triggers.mistakes
        return
    yield from _judge_notes(lift)
    if lift.verdict == "too few runs" and lift.doubt:
        yield lift.doubt
    yield from _on_the_test(gate)
    yield from _about_runs(lift)
    if cell.at_k:
        yield _at_k(lift, cell.at_k)


def ending_notes(cell: Cell) -> Iterator[str]:
    """Yield a line for prompts that were cut, and for each arm with cut answers or refusals."""
    shortest = min((trial.least_prompt_tokens for trial in cell.current_trials), default=0)
    runs = [run for trial in cell.current_trials for run in trial.runs]
    # The most of all: some servers count only what their prompt cache did not hold.
    most = max((run.completion.input_tokens or 0 for run in runs), default=0)
    if _SMALLEST_CONTEXT <= most < shortest:
        yield (
            f"the server counted at most {most:,} tokens in prompts of at least {shortest:,}: it "
            "cuts long prompts, so raise its context length (Ollama: OLLAMA_CONTEXT_LENGTH, "
            "llama-server: -c)"
        )
    limit = max((trial.max_tokens for trial in cell.trials), default=0)
    for arm, answers in cell.answers.items():
        for count, how in (
            (sum(run.is_cut for run in answers), f"cut at {limit} tokens: {CURE_OF_CUTS}"),
            (sum(run.refused for run in answers), "refused by the model"),
        ):
            if count:
                of_all = f"{count} of {counted(len(answers), 'answer')} {ARM_NAMES[arm]}"
                yield f"{of_all} {agreeing('was', count)} {how}"


def _on_the_gate(gate: Gate) -> Iterator[str]:
    """Yield why a gate did not fail, or decided nothing."""
    cell = gate.cell
    if gate.regressed and gate.outcome == "passed":
        yield "it became worse, which fails no gate here: --upskill-fail-on lacks 'regression'"
    if excused := cell.excused_cases:
        yield f"failed, but excused by a mark such as xfail: {listed(excused)}"
    if gate.outcome == "skipped":
        yield gate.text
    elif cell.missing:
        runs = f"{counted(cell.missing, 'run')} {agreeing('is', cell.missing)}"
        yield f"{runs} missing; the decision would be the same"


def _on_the_test(gate: Gate) -> Iterator[str]:
    """Yield what the test of a verdict asks for, where the table does not show it."""
    lift = gate.cell.lift
    needed = f"at most {_share(lift.alpha)}"
    added = f"runs were added to recorded ones (look {lift.look})" if lift.look > 1 else ""
    is_open = lift.verdict in {"too few runs", "no effect"} and gate.outcome != "skipped"
    # Other notes explain the verdicts of a judge, and those that open runs could change.
    seen = lift.observed if is_open and not (lift.judged or lift.doubt) else None
    if seen is not None and not seen.low <= 0 <= seen.high:
        p = _share(stats.lift_test(lift.counts))
        why = f"chance alone gives such a difference in {p} of experiments, and helps or hurts "
        why += f"needs {needed}{', as ' if added else ''}{added}"
        if (fewest := stats.fewest_runs(lift.counts)) < stats.MIN_RUNS:
            why = f"helps or hurts needs {stats.MIN_RUNS} runs in each arm; {fewest} count"
        yield f"{lift.verdict}: {why}"
    elif added:
        yield f"{added}, so helps or hurts needs a difference that chance alone gives in {needed}"


def _share(probability: float) -> str:
    return f"{100 * probability:.2g} %"


def _at_k(lift: Lift, k: int) -> str:
    """Return pass@k and pass^k of both arms."""
    arms = [lift.arms[arm] for arm in ("without_skill", "with_skill") if arm in lift.arms]
    at_k = [rate_text(arm.pass_at_k) for arm in arms if arm.pass_at_k]
    hat_k = [rate_text(arm.pass_hat_k) for arm in arms if arm.pass_hat_k]
    if not at_k:
        return f"pass@{k} is unknown, as no case has {k} runs that count: --upskill-runs {k}"
    return f"pass@{k} {' -> '.join(at_k)}, pass^{k} {' -> '.join(hat_k)}"


def _about_runs(lift: Lift) -> Iterator[str]:
    if lift.cell.copied:
        yield (
            "the model gave one answer in all runs of every trial, so one run counts: add cases, "
            "or let its server vary the answers, if it can (--upskill-param temperature=1)"
        )
    if lift.skipped_runs:
        done, planned = lift.rounds
        why = "as the verdict is clear, or would hardly become clear"
        yield f"stopped after {done} of {planned} rounds, {why}"
    if train := len(lift.pairs) - len(lift.counting_pairs):
        yield f"{counted(train, 'train case')} {agreeing('is', train)} left out of the lift"


def _judge_notes(lift: Lift) -> Iterator[str]:
    """Yield the notes about a cell whose verdict rests on a judge."""
    judged, labels = lift.judged, lift.cell.labels
    if judged is None:
        return
    if text := tipping_point(lift):
        yield f"{lift.verdict} by an uncalibrated judge: {text}"
    for which in ("with", "without"):
        if agreement := judged.agreement(with_skill=which == "with"):
            yield f"judge {which} the skill: {judge_accuracy(agreement)}"
    # Ten labels of a stratum are not ten of the part of it that ran.
    if labels is not None and len(lift.cell.trials) == lift.cell.planned:
        yield from (f"judge: {line}" for line in judged.reasons or labels.lines)


def unusable_judgements(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a line for each judge whose judgements could not all be used."""
    for judge in dict.fromkeys(gate.cell.judge for gate in gates):
        trials = [trial for gate in gates if gate.cell.judge == judge for trial in gate.cell.trials]
        judged = sum(bool(run.statements) for trial in trials for run in trial.runs)
        yield from unusable(judge, [error for trial in trials for error in trial.errors], judged)


def unusable(judge: str, errors: Sequence[str], judged: int) -> Iterator[str]:
    """Yield a line about the judgements of one judge that could not be used, if there are any.

    Args:
        judge: Full name of the judge.
        errors: Why runs are missing, one line each.
        judged: Number of judgements that could be used.
    """
    causes = [cause_of(error) for error in errors if error.startswith(UNUSABLE)]
    if not causes:
        return
    count, not_asked = len(causes), sum(GIVEN_UP in error for error in errors)
    given_up = f", and was not asked about {counted(not_asked, 'more answer')}" if not_asked else ""
    yield (
        f"judge: {judge} gave no usable judgement on {count} of {count + judged} "
        f"answers after two attempts{given_up}; for example, {causes[0]}"
    )
