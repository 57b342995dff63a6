"""Notes about a judge: what it decided in a cell, its kinship to models, what was no judgement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.judged import Judged
from pytest_upskill.cells.wording import (
    JUDGED_PAST,
    corrected,
    estimate,
    judge_accuracy,
    tipping_point,
)
from pytest_upskill.checks.judge import CUT_OFF, NO_EVIDENCE, UNUSABLE

_MAIN_SHARE = 0.5
"""Share of an interval's squared width from which on more labels narrow it most."""

_STRONGER = "choose a stronger model with --upskill-judge"
_NO_FORMAT = f"it does not reply in JSON as asked: {_STRONGER}"
_MISQUOTED = f"it quotes what the answer does not say: {_STRONGER}"
_MEANINGS = {
    CUT_OFF: "its reply is cut off: raise the limit with --upskill-param judge:max_tokens=16384",
    **dict.fromkeys(NO_EVIDENCE, _MISQUOTED),
}
"""What a reason that begins like this means, and its cure."""

_VENDORS = (
    ("OpenAI", r"\b(chat)?gpt|\bo[1-9]\b|codex"),
    ("Anthropic", r"claude"),
    ("Google", r"gemini|gemma"),
    ("DeepSeek", r"deepseek"),
    ("Alibaba", r"qwen|qwq"),
    ("Mistral", r"(mi|mini|mag|pix|code|dev)stral|mixtral"),
    ("Meta", r"llama[-_ ]?\d|meta-llama"),
    ("Zhipu", r"\bglm\b|chatglm"),
    ("Moonshot", r"kimi|moonshot"),
    ("xAI", r"grok"),
    ("Microsoft", r"\bphi[-_]?\d"),
)
"""Vendors with patterns of the names of their models."""


def judge_notes(gate: Gate) -> Iterator[str]:
    """Yield the notes about a cell whose verdict rests on a judge."""
    cell, judged = gate.cell, gate.cell.judged
    if judged is None:
        return
    if gate.verdict == "regression":
        yield JUDGED_PAST
    if judged.calibrated:
        yield from _calibrated_notes(cell, judged)
    else:
        yield from _uncalibrated_notes(cell, judged)


def judge_warning(cells: Iterable[Cell]) -> str:
    """Return a warning about a judge that is akin to models under test, empty if it is not."""
    judged = [cell for cell in cells if cell.judged is not None]
    judging_itself = [cell.model for cell in judged if _name(cell.judge) == _name(cell.resolved)]
    vendors = {
        cell.model: vendor
        for cell in judged
        if (vendor := vendor_of(cell.judge)) and vendor == vendor_of(cell.resolved)
    }
    if judging_itself:
        who = f"{_join_names(judging_itself)} judges its own answers"
    elif vendors:
        who = f"it is from {next(iter(vendors.values()))}, as is {_join_names(vendors)}"
    else:
        return ""
    return f"warning: judge: {who}: choose a judge from another vendor, or label answers"


def unusable_judgements(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each judge whose judgements could not all be used."""
    for judge in dict.fromkeys(cell.judge for cell in cells):
        trials = [trial for cell in cells if cell.judge == judge for trial in cell.trials]
        judged = sum(bool(run.statements) for trial in trials for run in trial.runs)
        yield from unusable(judge, [error for trial in trials for error in trial.errors], judged)


def unusable(judge: str, errors: Iterable[str], judged: int) -> Iterator[str]:
    """Yield a line about the judgements of one judge that could not be used, if there are any.

    Args:
        judge: Full name of the judge.
        errors: Why runs are missing, one line each.
        judged: Number of judgements that could be used.
    """
    reasons = [error.removeprefix(UNUSABLE) for error in errors if error.startswith(UNUSABLE)]
    if not reasons:
        return
    meanings = Counter(
        next((text for start, text in _MEANINGS.items() if reason.startswith(start)), _NO_FORMAT)
        for reason in reasons
    )
    ((meaning, _),) = meanings.most_common(1)
    yield (
        f"judge: {judge} gave no usable judgement on {len(reasons)} of {len(reasons) + judged} "
        f"answers after two attempts; mostly because {meaning}"
    )


def vendor_of(model: str) -> str:
    """Return who made a model, by its full name; empty if the name does not tell."""
    name = _name(model).lower()
    return next((vendor for vendor, pattern in _VENDORS if re.search(pattern, name)), "")


def _calibrated_notes(cell: Cell, judged: Judged) -> Iterator[str]:
    if cell.lift is not None:
        yield f"judged {estimate(cell.lift)}, {corrected(cell)}"
    for arm, agreement in (("with", judged.with_skill), ("without", judged.without_skill)):
        if agreement is not None:
            yield f"judge {arm} the skill: {judge_accuracy(agreement)}"
    yield from (f"judge: {note}" for note in judged.notes)
    correction = judged.correction
    if cell.verdict == "too few runs" and correction and correction.judge_share > _MAIN_SHARE:
        yield "too few labels: more of them would narrow the interval most"


def _uncalibrated_notes(cell: Cell, judged: Judged) -> Iterator[str]:
    if text := tipping_point(cell):
        yield f"{cell.verdict} by an uncalibrated judge: {text}"
    elif judged.uncorrected_verdict == "no effect" and cell.verdict == "too few runs":
        yield (
            "an uncalibrated judge cannot show that a skill has no effect: its errors in both arms "
            "shrink every lift"
        )
    if cell.labels is not None:
        yield from (f"judge: {reason}" for reason in judged.reasons)


def _name(model: str) -> str:
    """Return the name of a model without its host, server and parameters."""
    name = model.partition(" ")[0].partition(":")[2] or model
    return name[:1] + name[1:].partition("@")[0]


def _join_names(labels: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(labels))
