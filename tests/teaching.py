"""A depot whose bays have codes: scripted teachers, and a student with known pass rates."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import Case
from pytest_upskill.commands.main import main
from pytest_upskill.teacher.acceptance import is_held_out
from tests.loopback import Loopback, Received, Reply

BAYS = tuple(range(16))
"""As few as have enough held-out cases for a look, by their questions here and as proposals."""
HEAD = (
    "---\nname: codes\ndescription: Codes of the Quarn depot. Use for questions about bays.\n---\n"
    "# Codes\n\nEvery bay has a code.\n"
)
KNOWN = tuple(bay for bay in BAYS if bay % 2)
"""The bays whose codes the skill has to begin with."""
LACKING = tuple(bay for bay in BAYS if not bay % 2)
Teacher = Callable[[Received, int], str]
"""The reply of a teacher to a request, and the number of the request, from 1."""


def code(bay: int) -> str:
    return f"QX{bay:02d}Z"


def line(bay: int) -> str:
    return f"- number {bay}: {code(bay)}\n"


def question(bay: int) -> str:
    return f"Which code has bay {bay} of the depot in the town of Quarn?"


def held_out(bay: int) -> bool:
    return is_held_out(Case(id="", input=question(bay), checks=()))


TRAIN = tuple(bay for bay in BAYS if not held_out(bay))


def case(bay: int) -> dict[str, Any]:
    return {"id": f"bay-{bay}", "input": question(bay), "expected": {"contains": code(bay)}}


def proposed(bay: int, **changes: Any) -> dict[str, Any]:
    """Propose a sound case about a bay, as a teacher that is given its fact would."""
    return {
        "id": f"bay-{bay}",
        "input": f"Tell me the code of bay {bay} in the depot, please.",
        "expected": {"contains": code(bay)},
        "quote": f"The code of bay {bay} is {code(bay)}",
        "reference": f"It is {code(bay)}.",
        "alternatives": [code(bay), f"{code(bay)}, since the move."],
        "wrong": ["It is QX99Z."],
    } | changes


def facts(bays: Iterable[int]) -> str:
    """Write a document with the codes of some bays."""
    return "".join(f"The code of bay {bay} is {code(bay)}, since the move.\n" for bay in bays)


SKILL = HEAD + "".join(map(line, KNOWN))


def adding(text: str) -> str:
    """Write the reply of a teacher that adds a text below the heading."""
    heading = "Every bay has a code.\n"
    return json.dumps({"edits": [{"find": heading, "replace": heading + text}]})


FIX = adding("".join(map(line, LACKING)))
"""Adds every code that the skill lacks."""


@dataclass
class Depot:
    """A project with one skill, a teacher and a student."""

    folder: Path
    loopback: Loopback
    teacher: str = "teacher"
    teach: Teacher = lambda _, step: adding(f"Answer with care, in variant {step}.\n")
    knows: float = 0.95
    """How often the student gives a code that it was told."""
    guesses: float = 0.05
    """How often it gives one that it was not told."""
    asked: dict[str, Iterator[int]] = field(default_factory=dict)
    """Counts the requests with one text, as they arrive in any order."""
    teacher_requests: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loopback.answer = self._answer
        self.write()

    @property
    def skill(self) -> Path:
        return self.folder / "skills" / "codes"

    @property
    def text(self) -> str:
        return (self.skill / "SKILL.md").read_text("utf-8")

    def write(self, cases: Sequence[dict[str, Any]] | None = None, text: str = SKILL) -> None:
        self.skill.mkdir(parents=True, exist_ok=True)
        (self.skill / "SKILL.md").write_text(text, "utf-8")
        listed = [case(bay) for bay in BAYS] if cases is None else list(cases)
        (self.skill / "skill_meta.json").write_text(json.dumps({"cases": listed}, indent=1))

    def source(self, bays: Iterable[int]) -> str:
        """Write a document with the codes of some bays, and return its path."""
        file = self.folder / "codes.md"
        file.write_text(facts(bays), "utf-8")
        return str(file)

    def run(self, command: str, *more: str) -> int:
        url, given = self.loopback.openai_url, " ".join(more)
        usual = {"--eval-model": f"s=openai:student@{url}", "--max-answers": "2000"}
        if command != "cases":
            # They show what the usual ten show where a version passes nearly always or never.
            usual["--runs"] = "3"
        options = [f"{name}={value}" for name, value in usual.items() if name not in given]
        return main([command, *more, f"--model=t=openai:{self.teacher}@{url}", *options])

    def refine(self, *more: str) -> int:
        return self.run("refine", str(self.skill), *more)

    def decision(self) -> dict[str, Any]:
        """Read the decision of the latest command."""
        files = (self.folder / ".upskill" / "drafts").glob("*/decision.json")
        latest = max(files, key=lambda file: file.stat().st_mtime_ns)
        read: dict[str, Any] = json.loads(latest.read_text("utf-8"))
        return read

    def _answer(self, received: Received) -> Reply | str:
        if received.body["model"] == self.teacher:
            self.teacher_requests.append(received)
            return self.teach(received, len(self.teacher_requests))
        told = _code_asked_for(received) in received.system
        return self.answer_at(self.knows if told else self.guesses, received)

    def answer_at(self, rate: float, received: Received) -> str:
        """Answer as a student that passes at a rate; the same session gets the same passes."""
        sent = f"{received.body['model']}\n{received.system}\n{received.user}"
        number = next(self.asked.setdefault(sent, itertools.count()))
        passes = random.Random(f"{number} {sent}").random() < rate
        return f"It is {_code_asked_for(received)}." if passes else "I do not know that code."


def _code_asked_for(received: Received) -> str:
    match = re.search(r"bay (\d+)", received.user)
    assert match is not None
    return code(int(match[1]))


@pytest.fixture
def depot(pytester: pytest.Pytester, without_sockets: Loopback) -> Depot:
    return Depot(pytester.path, without_sockets)
