"""What reports say of an agent: whether the skill reached it, and when that decides nothing."""

from __future__ import annotations

from dataclasses import replace

from pytest_upskill.cases.skill import Case, GateRule
from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.text import Contains
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Thresholds, decide_gate
from pytest_upskill.grading.grade import Answer, grade
from pytest_upskill.models import AgentRun, AgentTurn, Completion
from pytest_upskill.report.junit import trial_properties
from pytest_upskill.report.notes import notes_of
from pytest_upskill.trials.result import TrialResult
from tests.planning import planned

CALL = ToolUse(name="skill", input='{"name": "sums"}')
RUN = AgentRun(
    version="1.2",
    turns=(AgentTurn(calls=(CALL,)), AgentTurn(), AgentTurn(text="350")),
    requests=4,
    offered=True,
    called=True,
    loaded=True,
)
DEFAULTS = Thresholds(min_mean_pass_rate=None, min_lift=None, fail_on=frozenset({"hurts"}))
NOT_LOADED = replace(RUN, loaded=False, broken="the model called the skill, but never got it")


def answer(run: AgentRun) -> Answer:
    completion = Completion(text="350", input_tokens=1, output_tokens=1, agent_run=run)
    return Answer(completion=completion)


def cell_of(*runs: AgentRun) -> Cell:
    case = Case(id="c", input="Sum up.", checks=(Contains(text="350"),))
    with_skill, without = planned(case, model="loop:haiku", runs=2)
    bare = AgentRun(version="1.2", turns=(AgentTurn(),), requests=1, offered=False, loaded=False)
    results = (grade(with_skill, [*map(answer, runs)]), grade(without, [answer(bare)] * 2))
    return Cell(
        path="p", skill="sums", model="loop-haiku", resolved="r", gate=GateRule(), planned=2,
        trials=results,
    )  # fmt: skip


def note(cell: Cell) -> str:
    return next(notes_of(decide_gate(cell, DEFAULTS)))


def test_the_table_says_how_often_the_skill_was_offered_and_loaded() -> None:
    cell = cell_of(RUN, replace(RUN, called=False, loaded=False))

    assert note(cell) == "offered / loaded in 2 / 1 of 2 runs"


def test_a_figure_that_no_request_shows_is_a_question_mark() -> None:
    assert note(cell_of(RUN, replace(RUN, loaded=None))) == "offered / loaded in 2 / ? of 2 runs"


def test_a_skill_that_was_called_but_not_loaded_makes_the_cell_unmeasured() -> None:
    cell = cell_of(RUN, NOT_LOADED)

    gate = decide_gate(cell, DEFAULTS)

    assert (gate.outcome, cell.lift.verdict) == ("skipped", "missing data")
    assert gate.misses_data
    assert gate.text == f"gate not decided: missing data: {NOT_LOADED.broken}"


def test_a_model_that_never_calls_a_tool_is_reported() -> None:
    cell = cell_of(*[replace(RUN, called=False, loaded=False, turns=())] * 2)

    (_, hint, *_) = notes_of(decide_gate(cell, DEFAULTS))

    assert hint.startswith("no run called a tool: ")
    assert not cell.lift.lacks_runs  # further runs would call none either


def test_a_trials_properties_are_means_per_run() -> None:
    result: TrialResult = cell_of(
        RUN, replace(RUN, loaded=False, called=False, turns=2 * RUN.turns)
    ).trials[0]

    found = dict(trial_properties(result))

    assert {name: text for name, text in found.items() if name.startswith("upskill.agent")} == {
        "upskill.agent": "loop",
        "upskill.agent.version": "1.2",
        "upskill.agent.offered": "1",
        "upskill.agent.loaded": "0.5",
        "upskill.agent.turns": "4.5",
        "upskill.agent.requests": "4",
        "upskill.agent.calls": "1.5",
    }


def test_reports_hold_only_the_beginnings_of_files() -> None:
    files = tuple(WorkspaceFile(name=f"f{n}", text="x" * 5000) for n in range(80))

    (run, *_) = cell_of(replace(RUN, changed=files), RUN).trials[0].runs

    assert run.completion.agent_run is not None
    kept = run.completion.agent_run.changed
    assert (len(kept), {len(file.text) for file in kept}) == (50, {2000})
