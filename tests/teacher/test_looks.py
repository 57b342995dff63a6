"""Looks at held-out questions: no detour makes a later look an earlier one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case
from pytest_upskill.teacher.acceptance import (
    STRIDE,
    KeptLook,
    Ledger,
    VersionComparison,
    question_digest,
    text_digest,
)

CASES = [Case(id=f"case-{number}", input=f"What is {number}?", checks=()) for number in range(3)]
TASK = "Write kernels"


def comparison(
    cases: list[Case], old: str = "a", new: str = "b", task: str = ""
) -> VersionComparison:
    return VersionComparison(
        old=old,
        new=new,
        students=("s",),
        questions=tuple(sorted(map(question_digest, cases))),
        checks="0",
        runs=10,
        task=text_digest(task) if task else "",
    )


class Project:
    """A ledger and recordings, and the looks that were had in it."""

    def __init__(self, folder: Path) -> None:
        self.recordings = folder / "cache"
        self.ledger = Ledger(folder / "looks", Cache(self.recordings, "auto"))

    def next_look(self, asked: VersionComparison) -> KeptLook:
        return self.ledger.next_look("csv", asked, f"{asked.new}")

    def look(
        self,
        cases: list[Case],
        asked: VersionComparison,
        decision: Literal["accepted", "not shown"] = "not shown",
    ) -> KeptLook:
        """Have a look: it is written, and an answer to each question recorded."""
        look = replace(self.next_look(asked), decision=decision)
        self.ledger.write(look)
        for number, case in enumerate(cases):
            file = self.recordings / "00" / f"{look.draw}-{number}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            request = {"user": [case.input], "run": look.draw * STRIDE}
            fields = {"request": request, "completion": {}, "text": []}
            file.write_text(json.dumps({"subject": "x", "recorded": "x", **fields}), "utf-8")
        return look


WAYS = st.sampled_from(
    ["recordings", "ledger", "blanks", "ids", "checks", "skill", "student", "fewer", "reworded"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(WAYS, min_size=1, max_size=6))
def test_whatever_is_changed_or_deleted_each_look_has_a_higher_number(ways: list[str]) -> None:
    with TemporaryDirectory() as folder:
        project, cases, asked = Project(Path(folder)), [*CASES], comparison(CASES)
        number = project.look(cases, asked).look
        for turn, way in enumerate(ways):
            match way:
                case "recordings" if project.ledger.looks(asked):
                    shutil.rmtree(project.recordings, ignore_errors=True)
                case "ledger" if any(project.recordings.glob("*/*.json")):
                    shutil.rmtree(project.ledger.folder, ignore_errors=True)
                case "blanks":
                    cases = [replace(case, input=f"{case.input.upper()} \n") for case in cases]
                case "ids":
                    cases = [replace(case, id=f"{case.id}-{turn}") for case in cases]
                case "fewer":
                    cases = cases[:1]
                case _:
                    pass
            asked = comparison(cases, old=f"old-{turn}", new=f"new-{turn}")
            asked = replace(asked, checks=f"{way == 'checks'}", students=(way,))
            if "recordings" in ways and "ledger" in ways:
                break  # who deletes both starts anew
            look = project.look(cases, asked)
            assert look.look == number + 1
            number = look.look


def test_a_task_counts_even_if_each_generation_makes_other_cases(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number, task in enumerate((TASK, "write  kernels.", "WRITE KERNELS"), 1):
        cases = [Case(id="x", input=f"Question {number}?", checks=())]
        assert project.look(cases, comparison(cases, old="", task=task)).look == number

    assert project.next_look(comparison(CASES, old="", task="parse YAML")).look == 1


def test_what_a_look_accepted_does_not_count_for_the_version_that_follows(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = project.look(CASES, comparison(CASES, old="", new="generated"), "accepted")
    second = project.next_look(comparison(CASES, old="generated", new="refined"))

    assert (second.look, second.draw) == (1, first.draw + 1)
    # The same version once more is another chance, and so is a version made by hand.
    assert project.next_look(comparison(CASES, old="", new="generated")).look == 2
    assert project.next_look(comparison(CASES, old="by hand", new="refined")).look == 2


def test_a_look_that_a_merge_broke_is_not_forgotten(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.look(CASES, comparison(CASES))
    shutil.rmtree(project.recordings)
    (file,) = project.ledger.folder.iterdir()
    file.write_text(f"<<<<<<< HEAD\n{file.read_text('utf-8')}", "utf-8")

    with pytest.raises(WorkError, match="not what was written: restore it with git"):
        project.next_look(comparison(CASES, new="c"))


def test_looks_of_two_branches_count_both(tmp_path: Path) -> None:
    one, other = Project(tmp_path / "one"), Project(tmp_path / "other")
    one.look(CASES, comparison(CASES))
    look = other.look(CASES[:2], comparison(CASES[:2], new="c"))
    one.ledger.write(look)

    assert one.next_look(comparison(CASES, new="d")).look == 3
    assert one.next_look(comparison(CASES[2:], new="d")).look == 2
