"""Comparison of a cell with its past, a baseline or a git ref, to detect regressions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_upskill import stats
from pytest_upskill.figures.baseline import (
    ArmCounts,
    Baseline,
    BaselineCase,
    Baselines,
    baseline_path,
)
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.triggers import DESCRIBE
from pytest_upskill.figures.wording import p_text, points
from pytest_upskill.project.messages import listed
from pytest_upskill.trials.result import TrialResult

_NAMED = 5
"""Maximum number of cases in a headline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """Results of one case with the current and the old skill."""

    id: str
    counts: stats.CaseCounts
    """Counts in which the current skill stands for *with*, and the old one for *without*."""
    if_for: stats.CaseCounts
    """Counts if all open runs were for the current skill."""
    if_against: stats.CaseCounts
    """Counts if they were all against it."""

    @property
    def was(self) -> str:
        """Passes of the runs with the old skill, ``4/5``."""
        return f"{self.counts.passes_without}/{self.counts.runs_without}"

    @property
    def fell_clearly(self) -> bool:
        """Whether this case alone shows that the skill became worse."""
        return stats.significant(stats.regression_test([self.counts]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Results of a cell's cases with the current and the old skill."""

    compared_with: str
    """What the cell is compared with: ``baseline`` or a git ref."""
    cases: tuple[ComparedCase, ...] = ()
    p: float = 1.0
    """P-value of ``stats.regression_test``, adjusted for the number of cells by ``adjust``."""
    undecided: bool = False
    """Whether open runs, of this cell or others, could change whether it became worse."""
    drift: str = ""
    """Why the model, and not the skill, may have changed; empty if not."""
    notes: tuple[str, ...] = ()
    """Further notes, one line each."""
    lacking: bool = False
    """Whether no case is compared, but some should be."""
    lost: tuple[str, ...] = ()
    """Cases of the baseline that were removed or changed since, so that they are not compared."""
    same_skill: bool = False
    """Whether the skill is that of the baseline, so that something else made a difference."""
    chooses: bool = False
    """Whether the cases are queries for which a model chooses a skill."""

    @property
    def measured(self) -> tuple[ComparedCase, ...]:
        """Cases with valid runs with both skills."""
        return tuple(case for case in self.cases if case.counts.usable)

    @property
    def regressed(self) -> bool:
        """Whether the skill regressed: the cases pass less often, and the model did not change."""
        is_worse = _is_worse([case.counts for case in self.cases], self.p)
        return is_worse and not self.drift and not self.undecided

    @property
    def mean_change(self) -> float | None:
        """Change of the mean pass rate of the measured cases, a fraction; None without any."""
        return stats.lift([case.counts for case in self.measured])

    @property
    def sentence(self) -> str:
        """Totals and p-value: ``12/25 with the skill, baseline 24/25, p = 0.003``."""
        counts = [case.counts for case in self.measured]
        now = _total((case.passes_with, case.runs_with) for case in counts)
        old = _total((case.passes_without, case.runs_without) for case in counts)
        what = "runs right" if self.chooses else "with the skill"
        # It is that of having become worse.
        p = f", {p_text(self.p)}" if (self.mean_change or 0) < 0 else ""
        return f"{now} {what}, {self.compared_with} {old}{p}"

    @property
    def base(self) -> str:
        """What the cell is compared with, for use in a sentence."""
        return "the baseline" if self.compared_with == "baseline" else self.compared_with

    @property
    def worse(self) -> list[ComparedCase]:
        """Cases that pass less often, the most first."""
        fell = (case for case in self.measured if case.counts.difference < 0)
        return sorted(fell, key=lambda case: case.counts.difference)

    @property
    def headline(self) -> str:
        """The regression: ``the skill became worse than the baseline: case (all cases: …)``."""
        clear = [case for case in self.worse if case.fell_clearly] or self.worse
        worse = listed([case.id for case in clear], _NAMED) or "in open runs"
        skill = "the unchanged skill" if self.same_skill else "the skill"
        subject, of = ("the choice", "queries") if self.chooses else (skill, "cases")
        return f"{subject} became worse than {self.base}: {worse} (all {of}: {self.sentence})"

    @property
    def next_step(self) -> str:
        """Advice about a regression."""
        step = DESCRIBE if self.chooses else "restore what the skill has lost"
        if self.same_skill:
            step = "measure again, and look at what changed in the model or its server"
        if self.compared_with != "baseline":
            return step if self.chooses else f"{step}; where that is right, correct the cases"
        return (
            f"{step}; where that is right, record the baseline again: the same command with "
            "--upskill-baseline-update in place of --upskill-compare"
        )

    @property
    def remarks(self) -> Iterator[str]:
        """Notes to print below the table."""
        if self.regressed:
            yield from (self.headline, f"next: {self.next_step}")
        elif (change := self.mean_change) is not None:
            how = ", not clearly worse" if change < 0 else ", not worse"
            told = "" if self.drift or self.undecided else how
            yield f"{points(change)} points against {self.base}{told} ({self.sentence})"
        if self.drift:
            cure = "regressions are not reported, record the baseline again"
            yield f"warning: {self.drift}: {cure}"
        yield from self.notes

    @property
    def worse_lines(self) -> list[str]:
        """Cases that pass less often, with old and new results."""
        runs = ((each, each.counts.passes_with, each.counts.runs_with) for each in self.worse)
        return [f"worse: {each.id}: {each.was} -> {passes}/{of}" for each, passes, of in runs]


def adjust(comparisons: Sequence[Comparison]) -> Iterator[Comparison]:
    """Test comparisons of one kind, and adjust the p-values for their number (Holm).

    The same is done with all open runs counted for the current skills, and with all counted against
    them. Adjusted p-values never decrease when a p-value of another cell increases, so these two
    results bound what the open runs of any cells could have changed.
    """
    seen = _tests([[case.counts for case in each.cases] for each in comparisons])
    if_for = _tests([[case.if_for for case in each.cases] for each in comparisons])
    against = _tests([[case.if_against for case in each.cases] for each in comparisons])
    for each, (p, worse), (_, best), (_, worst) in zip(
        comparisons, seen, if_for, against, strict=True
    ):
        yield replace(each, p=p, undecided=not each.drift and len({worse, best, worst}) > 1)


def _tests(cells: Sequence[Sequence[stats.CaseCounts]]) -> list[tuple[float, bool]]:
    """Return Holm's adjusted p-value of each cell, and whether it became worse."""
    p_values = stats.holm([_p_value(cases) for cases in cells])
    return [(p, _is_worse(cases, p)) for cases, p in zip(cells, p_values, strict=True)]


def _p_value(cases: Sequence[stats.CaseCounts]) -> float:
    """Return the p-value of a cell: 1, not mid-p's .5, where nothing differs in any run."""
    same = all(case.usable and case.difference == 0 for case in cases)
    unanimous = all(case.passes_with in {0, case.runs_with} for case in cases)
    return 1.0 if same and unanimous else stats.regression_test(cases)


def _is_worse(cases: Sequence[stats.CaseCounts], p: float) -> bool:
    difference = stats.lift(cases)
    return difference is not None and difference < 0 and stats.significant(p)


def _total(arms: Iterable[tuple[int, int]]) -> str:
    """Return the sum of passes and runs, ``31/40``."""
    passes, runs = (sum(counts) for counts in zip(*arms, strict=True))
    return f"{passes}/{runs}"


_RECORD = "record one with --upskill-runs 10 --upskill-baseline-update and commit it"


def compare(cells: Sequence[Cell], baselines: Baselines | None) -> list[Comparison | None]:
    """Return the comparison of each cell with its past, None without a decision or a past.

    Against a git ref only skills that changed are tested, or whose catalogue did, as nothing else
    differs; against a baseline all are. Holm's correction counts those of a kind that are tested:
    lifts are one family, choices another.

    Args:
        cells: All cells of the session.
        baselines: Baselines to compare with; None for none. A cell with trials of an old skill
            from a git ref is compared with those instead.
    """
    compared = [_with_past(cell, baselines) for cell in cells]
    for chooses in (False, True):
        family = {
            index: each
            for index, each in enumerate(compared)
            if each and each.cases and each.chooses is chooses
        }
        for index, tested in zip(family, adjust([*family.values()]), strict=True):
            compared[index] = tested
    return compared


def _with_past(cell: Cell, baselines: Baselines | None) -> Comparison | None:
    if cell.why_undecidable:
        return None
    if cell.ref:
        return _against_ref(cell)
    return None if baselines is None else against_baseline(cell, baselines.get(baseline_path(cell)))


def against_baseline(cell: Cell, baseline: Baseline | None) -> Comparison:
    """Compare a cell with its baseline, on cases whose prompt and checks did not change.

    Args:
        cell: The cell.
        baseline: Its baseline, None if there is none.
    """
    comparison = Comparison(compared_with="baseline", chooses=cell.chooses)
    if baseline is None:
        what = "trigger baseline" if cell.chooses else "baseline"
        return replace(comparison, notes=(f"no {what}: {_RECORD}",), lacking=True)
    recorded = {case.id: case for case in baseline.cases}
    trials = cell.current_trials
    same = {each.case: old for each in trials if (old := _same_case(each, recorded))}
    compared = [trial for trial in trials if trial.case in same]
    cases = tuple(_compared(trial, same[trial.case].with_skill) for trial in compared)
    notes, lost = _not_compared(cell, recorded, same)
    lacking = not any(case.counts.usable for case in cases)
    if lacking:
        what = "query" if cell.chooses else "case"
        notes = (f"no {what} in common with the baseline: {_RECORD}", *notes)
    drift = _other_model(cell, baseline) or _other_results(cell, same)
    digests = {trial.skill_digest for trial in trials}
    return replace(
        comparison,
        cases=cases,
        lacking=lacking,
        lost=lost,
        drift=drift,
        notes=notes,
        same_skill=not cell.chooses and digests == {baseline.skill_digest},
    )


def _same_case(trial: TrialResult, recorded: Mapping[str, BaselineCase]) -> BaselineCase | None:
    """Return the recorded case with the prompt and the checks of a trial; its name may differ."""
    named = recorded.get(trial.case)
    task = (trial.prompt_digest, trial.grader_digest)
    candidates = [named] if named else recorded.values()
    return next((old for old in candidates if (old.digest, old.grader) == task), None)


def note_of_changes(cell: Cell) -> str:
    """Return which cases a pull request removed or changed, and what that means; empty if none."""
    if not cell.case_changes:
        return ""
    return f"{cell.case_changes}: a worse skill may look better, so restore them or review each"


def _against_ref(cell: Cell) -> Comparison:
    """Compare a cell with the results of its old skill, from a git ref, in the same session."""
    notes = (note,) if (note := note_of_changes(cell)) else ()
    comparison = Comparison(compared_with=cell.ref, chooses=cell.chooses, notes=notes)
    if cell.history:
        notes = (cell.history, *notes)
        return replace(comparison, notes=notes, lacking=cell.past_unknown)
    old_trials = {trial.case: trial for trial in cell.old_trials}
    compared = [trial for trial in cell.current_trials if trial.case in old_trials]
    # What a new or changed case gains must not make up for what the others lose.
    if lasting := [trial for trial in compared if trial.case not in cell.other_cases]:
        if len(lasting) < len(compared):
            other = listed([each for each in cell.other_cases if each in old_trials], _NAMED)
            notes = (*notes, f"not compared, new or changed since {cell.ref}: {other}")
        compared = lasting
    cases = tuple(_compared(trial, old_trials[trial.case]) for trial in compared)
    return replace(comparison, cases=cases, notes=notes)


def _compared(trial: TrialResult, old: TrialResult | ArmCounts) -> ComparedCase:
    """Compare a trial with its past; all runs of a baseline are known."""
    if isinstance(old, ArmCounts):
        counts = at_best = at_worst = (old.passes, old.runs)
    else:
        counts = (old.passes, len(old.runs))
        at_best, at_worst = (old.counts_if(open_pass=passed) for passed in (True, False))
    return ComparedCase(
        id=trial.case,
        counts=stats.CaseCounts(trial.passes, len(trial.runs), *counts),
        if_for=stats.CaseCounts(*trial.counts_if(open_pass=True), *at_worst),
        if_against=stats.CaseCounts(*trial.counts_if(open_pass=False), *at_best),
    )


def _not_compared(
    cell: Cell, recorded: Mapping[str, BaselineCase], same: Mapping[str, BaselineCase]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return lines about the cases that cannot be compared with the baseline, and those lost.

    Args:
        cell: The cell.
        recorded: The cases of the baseline, by their names then.
        same: Those that are compared, by their names now.
    """
    here = {trial.case for trial in cell.current_trials if trial.runs}
    known = here.union(cell.skipped, (trial.case for trial in cell.trials))
    changed = (here & recorded.keys()) - same.keys()
    removed = recorded.keys() - known - {old.id for old in same.values()}
    kinds = (
        ("changed since the baseline", changed),
        ("new since the baseline", here - recorded.keys() - same.keys()),
        ("removed since the baseline", removed),
        ("without a valid run with the skill now", (recorded.keys() & known) - here),
    )
    notes = (f"not compared, {why}: {', '.join(sorted(ids))}" for why, ids in kinds if ids)
    return tuple(notes), tuple(sorted(changed | removed))


def _other_results(cell: Cell, same: Mapping[str, BaselineCase]) -> str:
    """Return that results without the skill differ from the baseline's; empty if not clearly."""
    pairs = [
        (trial, old)
        for trial in cell.counted_trials
        if trial.arm == "without_skill" and trial.case in same and trial.runs
        if (old := same[trial.case].without_skill)
    ]
    # They differ if they do whatever the open runs would have shown.
    p = max(
        stats.lift_test(
            [
                stats.CaseCounts(*trial.counts_if(open_pass=passed), old.passes, old.runs)
                for trial, old in pairs
            ]
        )
        for passed in (False, True)
    )
    if not stats.significant(p, alpha=0.01):
        return ""
    now = _total((trial.passes, len(trial.runs)) for trial, _ in pairs)
    before = _total((old.passes, old.runs) for _, old in pairs)
    return f"the model has changed: {now} without the skill, baseline {before}"


def _other_model(cell: Cell, baseline: Baseline) -> str:
    """Return that other models answered than in the baseline; empty if the same ones did."""
    served, recorded = set(cell.served), set(baseline.served)
    if not served or not recorded or served & recorded:
        return ""
    now, old = (" and ".join(sorted(names)) for names in (served, recorded))
    return f"the model is {now} now, {old} in the baseline"
