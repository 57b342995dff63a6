"""caliper: ``*.eval.yaml`` with ``tasks``.

Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape, keys
from pytest_upskill.cases.adapters.choice import Choice
from pytest_upskill.cases.adapters.fields import Name, NeedsAgent, Prompt, Skill
from pytest_upskill.cases.adapters.graders import judged


def _activates(value: object) -> Draft:
    """Read the skills that should be taken; an empty list means none."""
    names = tuple(map(str, value if isinstance(value, list) else [value]))
    return Draft(choice=Choice(expected=names) if names else Choice(nothing=True))


def _expect(value: object) -> Draft:
    return Draft(checks=judged(value, prefix="The answer fits this: ")) if value else NOTHING


def _assert(value: object) -> Draft:
    return Draft(left_out=("its Python code is not run",)) if value else NOTHING


def _setup(value: object) -> Draft:
    return Draft(commands=(str(value),)) if value else NOTHING


class Task(Shape):
    """A task."""

    id: Name = keys("id", "name")
    prompt: Prompt = NOTHING
    skill: Skill = NOTHING
    expect: Annotated[Draft, Reads(_expect, "a statement for a judge")] = NOTHING
    assert_: Annotated[Draft, Reads(_assert, "is left out")] = NOTHING
    activates: Annotated[Draft, Reads(_activates, "skills to choose; `[]` for none")] = NOTHING
    setup: Annotated[Draft, Reads(_setup, "a command before an agent starts")] = NOTHING
    history: Annotated[Draft, NeedsAgent("continues no session")] = NOTHING


def _find(value: Any) -> list[Entry]:
    """Return the tasks, each with the skill of the file if it has only one."""
    if not isinstance(value, dict) or not {"skills", "tasks"} <= value.keys():
        return []
    paths = [path for path in value["skills"] or () if isinstance(path, str)]
    name = PurePosixPath(paths[0]).name if len(paths) == 1 else ""
    own = {"skill": name} if name.strip(".") else {}
    return [
        Entry(("tasks", index), {**own, **task} if isinstance(task, dict) else task)
        for index, task in enumerate(value["tasks"] or ())
    ]


ADAPTER = Adapter(
    tool="caliper",
    about="caliper-eval 0.21.0",
    places=("*.eval.{yaml,yml}",),
    find=_find,
    shape=Task,
    example="""\
skills: [../skills/csv]
tasks:
  - name: columns
    prompt: Which columns are empty?
    expect: Names the column price
    activates: [csv]
  - {name: weather, prompt: What is the weather?, activates: []}
""",
)
