"""Trials of a skill's cases, and the request of each."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

from pytest_upskill.cases.catalogue import Catalogue, Catalogues, ListedSkill, as_listed
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks.calls import OfCalls
from pytest_upskill.checks.files import NO_SETUP
from pytest_upskill.models import AgentTask, Model, Request
from pytest_upskill.models.request import MAX_TURNS
from pytest_upskill.trials.trigger_trial import choosing

Arm = Literal["with_skill", "without_skill", "old_skill", "trigger", "old_trigger"]
ARMS: tuple[Arm, ...] = ("with_skill", "without_skill", "old_skill", "trigger", "old_trigger")
"""Arms in the order of their trials; the old ones exist only with a git ref to compare with."""

TRIGGER_ARMS = frozenset[Arm]({"trigger", "old_trigger"})
"""Arms in which a model chooses among skills; they have no part in a lift."""

FRAME = (
    "Answer the user's request directly and completely in one reply. "
    "Put code and file contents in fenced blocks that name their language."
)
"""System prompt of cases that are answered, to which only the skill block is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One case on one model in one arm: one pytest item."""

    skill: Skill
    case: Case
    model: Model
    arm: Arm
    skill_block: str
    """Text that the arm adds to the system prompt; empty without a skill."""
    runs: int
    first_run: int = 0
    """Index of the first run; a later one asks for answers that trials from 0 on do not have."""
    draw: int = 0
    """Number of earlier cases of the skill with the same question: each has its own answers."""
    min_pass_rate: float | None = None
    """Minimum share of runs that pass; None for more than half."""
    max_tokens: int
    early_stop: bool = False
    """Whether remaining runs are skipped once the verdict is clear."""
    judge: Model | None = None
    """Model that decides the case's statements; None if there is none."""
    catalogue: Catalogue | None = None
    """What the model chooses from; None unless it chooses."""

    @property
    def chooses(self) -> bool:
        """Whether the model chooses among skills."""
        return self.arm in TRIGGER_ARMS

    @property
    def listed(self) -> ListedSkill:
        """The skill as the catalogue of the arm lists it."""
        version = self.skill.before if self.arm == "old_trigger" else self.skill
        return as_listed(version or self.skill)

    @property
    def name(self) -> str:
        """The part of its node id after the path, independent of the number of runs."""
        return f"{self.case.id}[{self.model.label}-{self.arm}]"


def run_count(model: Model, runs: int, *, chooses: bool = False) -> int:
    """Return the number of runs of a trial, 1 if further runs would repeat the first.

    Where a model chooses, each run shows the catalogue in another order.
    """
    differ = model.is_language_model if chooses else model.varies
    return runs if differ else 1


def plan(
    skill: Skill,
    models: Iterable[Model],
    *,
    runs: int,
    baseline_runs: int | None = None,
    min_pass_rate: float | None = None,
    max_tokens: int,
    early_stop: bool = False,
    judge: Model | None = None,
    catalogues: Catalogues | None = None,
) -> Iterator[Trial]:
    """Make the trials of a skill.

    The arms of a case are next to each other, so that they run under the same conditions. A case
    that is restricted to some of the models has trials on those only. A case that is restricted to
    other models has trials on all, which are skipped and so visible.

    Args:
        skill: The skill and its cases.
        models: Every model chosen for this run.
        runs: Number of runs of each trial.
        baseline_runs: Number of those without the skill; None if it is the same.
        min_pass_rate: Minimum share of runs that pass if the case file sets none; None for more
            than half.
        max_tokens: Maximum output tokens of one answer.
        early_stop: Whether to skip remaining runs once the verdict is clear; ignored for a skill
            with a minimum lift or with labels that correct the judge, which needs all runs.
        judge: Model that decides statements about answers.
        catalogues: What an agent would see; None for no trials in which a model chooses.
    """
    models = tuple(models)
    # A judge's verdict may be clear where the corrected one is not.
    early_stop = early_stop and skill.gate.min_lift is None and not (judge and skill.labelled)
    skill_blocks: dict[Arm, str] = {"with_skill": block_of(skill), "without_skill": ""}
    runs_of_arm = {"without_skill": baseline_runs or runs}
    if skill.before is not None:
        skill_blocks["old_skill"] = block_of(skill.before)
    catalogues_of_arms: dict[Arm, Catalogue] = {}
    if catalogues is not None and any(case.trigger for case in skill.cases):
        catalogues_of_arms = _trigger_catalogues(skill, catalogues)
    counts = Counter[tuple[object, ...]]()
    for case in map(partial(_comparable, skill), skill.cases):
        rate = min_pass_rate if case.min_pass_rate is None else case.min_pass_rate
        models_of_case = [model for model in models if not case.why_not_for([model.label])]
        for model in models_of_case or models:
            make = partial(
                Trial,
                skill=skill,
                model=model,
                min_pass_rate=rate,
                max_tokens=model.parameters.max_tokens or max_tokens,
            )
            trials = list[Trial]()
            if case.is_answered:
                trials += (
                    make(
                        case=case,
                        arm=arm,
                        skill_block=block,
                        runs=run_count(model, runs_of_arm.get(arm, runs)),
                        early_stop=early_stop,
                        judge=judge,
                    )
                    for arm, block in skill_blocks.items()
                )
            if case.trigger:
                make_query = partial(make, runs=run_count(model, runs, chooses=True))
                trials += _queries(case, model, catalogues_of_arms, make_query)
            yield from (_with_draw(trial, counts) for trial in trials)


def _queries(
    case: Case, model: Model, catalogues: Mapping[Arm, Catalogue], make: partial[Trial]
) -> Iterator[Trial]:
    """Make the trials of a case in which the model chooses a skill, one in each arm."""
    is_skipped = False
    for arm, catalogue in catalogues.items():
        query = _query(case, catalogue, workspace=bool(model.agent))
        is_skipped = is_skipped or bool(query.skip)
        # If it is skipped in one of the arms, as its skill is new or gone, nothing is compared.
        if arm != "old_trigger" or not is_skipped:
            yield make(case=query, arm=arm, skill_block="", catalogue=catalogue)


_NEEDS_SKILL = (
    "decides nothing: only an agent with the skill can make the calls of {}; add a check of the "
    "result, such as 'file_contains'"
)


def _comparable(skill: Skill, case: Case) -> Case:
    """Return a case whose checks count in both arms.

    A check of calls that only an agent with the skill can make is reported instead: the skill's
    tool, its folder, its files. In the arm without the skill it could never hold.
    """
    versions = (skill.files, skill.before.files if skill.before else ())
    files = {file.name for files in versions for file in files if "/" in file.name}
    own = {*files, f"skills/{skill.name}", f"skills/{skill.folder.name}"}
    needing = tuple(
        check
        for check in case.checks
        if isinstance(check, OfCalls) and any(call.needs_skill(own) for call in check.calls)
    )
    if not needing:
        return case
    checks = tuple(check for check in case.checks if check not in needing)
    skip = case.skip or (None if checks else _NEEDS_SKILL.format(needing[0].name))
    return replace(case, checks=checks, process=(*case.process, *needing), skip=skip)


def _with_draw(trial: Trial, counts: Counter[tuple[object, ...]]) -> Trial:
    """Return a trial with its ``draw``: cases that share an answer would not be independent.

    It is counted by model and arm in the order of the file, whatever is selected later: so an
    answer belongs to the same case in every run.

    Args:
        trial: The trial.
        counts: How often each prompt was drawn before; this trial is added.
    """
    case = trial.case
    if case.why_not_for([trial.model.label]):
        return trial
    turns = case.max_turns or MAX_TURNS
    question = case.input, case.files, case.workspace, case.setup
    prompt = trial.model, trial.arm, *question, turns
    counts[prompt] += 1
    return replace(trial, draw=counts[prompt] - 1) if counts[prompt] > 1 else trial


def request_of(trial: Trial, run: int) -> Request:
    """Return the first request of a trial in one run; ``run`` counts from 0."""
    case, agent = trial.case, bool(trial.model.agent)
    asked = Request(
        model=trial.model,
        frame="" if agent else FRAME,
        skill="" if agent else trial.skill_block,
        task=_agent_task(trial) if agent and not trial.chooses else None,
        user=case.input if agent else user_message(case),
        max_tokens=trial.max_tokens,
        run=trial.first_run + run,
        draw=trial.draw,
    )
    if trial.catalogue is None:
        return asked
    return choosing(
        asked, catalogue=trial.catalogue, own=trial.listed, workspace=case.staged, setup=case.setup
    )


_MOST_BYTES_PER_TOKEN = 6
"""More than the mean of texts of any language in any tokenizer: English has four to five."""

_REPEATED = re.compile(r"(.)\1{3,}", re.DOTALL)


def least_prompt_tokens(trial: Trial) -> int:
    """Return how many tokens the prompt of a trial has at least, 0 if an agent writes it."""
    first = request_of(trial, run=0)
    if first.task is not None:
        return 0
    return sum(map(_least_tokens, (first.frame, first.skill, first.user)))


@lru_cache(maxsize=256)  # The skill is long, and the same in all trials with it.
def _least_tokens(text: str) -> int:
    # Runs of spaces or dashes may be a single token.
    return len(_REPEATED.sub(r"\1", text).encode("utf-8", "replace")) // _MOST_BYTES_PER_TOKEN


def _query(case: Case, catalogue: Catalogue, *, workspace: bool) -> Case:
    """Return a case without its checks: where a model only chooses, there is no answer.

    Expected skills that cannot be chosen are left out too; if none is left, it is skipped.

    Args:
        case: The case.
        catalogue: The skills that can be chosen.
        workspace: Whether the model's agent may look around in the workspace of the case.
    """
    assert case.trigger is not None
    known = filter(None, map(catalogue.named, case.trigger.others))
    return replace(
        case,
        trigger=replace(case.trigger, others=tuple(dict.fromkeys(known))),
        checks=(),
        process=(),
        workspace=case.workspace if workspace else (),
        setup=case.setup if workspace else NO_SETUP,
        max_turns=None,
        skip=catalogue.why_unlisted(case),
    )


def _trigger_catalogues(skill: Skill, catalogues: Catalogues) -> dict[Arm, Catalogue]:
    """Return the catalogue of each trigger arm."""
    now = catalogues.of(skill)
    if not skill.listed_before:
        return {"trigger": now}
    then = (ListedSkill(name=name, description=text) for name, text in skill.listed_before)
    return {"trigger": now, "old_trigger": Catalogue.of(then)}


def _agent_task(trial: Trial) -> AgentTask:
    """Return what an agent gets in the trial's arm."""
    skill = trial.skill
    version = {"with_skill": skill, "old_skill": skill.before}.get(trial.arm)
    return AgentTask(
        workspace=trial.case.staged,
        setup=trial.case.setup,
        skill_name=version.name if version else "",
        skill=version.files if version else (),
        max_turns=trial.case.max_turns or MAX_TURNS,
    )


def block_of(skill: Skill) -> str:
    """Return the text that an arm with the skill adds to the system prompt."""
    return f'\n\n<skill name="{skill.name}">\n{skill.text.rstrip()}\n</skill>'


def user_message(case: Case) -> str:
    """Return the message of a case to a model in every arm: its input and its files."""
    files = (f'\n\n<file name="{file.name}">\n{file.prompt}\n</file>' for file in case.files)
    return case.input + "".join(files)
