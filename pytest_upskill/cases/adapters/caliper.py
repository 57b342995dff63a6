"""caliper: ``*.eval.yaml`` with ``tasks``.

Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, Shape, listed
from pytest_upskill.cases.adapters.choice import Choice
from pytest_upskill.cases.adapters.draft import Draft, Flaw, as_list, left_out


def _activates(value: object) -> Draft:
    """Read the skills that should be taken; an empty list means none."""
    names = as_list(value)
    if not all(map(keys.is_text, names)):
        raise Flaw("must be a list of names of skills")
    return Draft(choice=Choice(expected=tuple(names)) if names else Choice(nothing=True))


def _assert(_value: object) -> Draft:
    raise left_out("its Python code is not run")


_SHAPE = Shape(
    {
        "id|name": keys.NAME,
        "prompt": keys.PROMPT,
        "skill": keys.SKILL,
        "expect": make.statements("a statement for a judge", "The answer fits this: "),
        "assert": Reader("is left out", _assert),
        "activates": Reader("skills to choose; `[]` for none", _activates, reads_empty=True),
        "setup": Reader("a command before an agent starts", lambda e: Draft(commands=(str(e),))),
        "history": keys.needs_agent("continues no session"),
    }
)


def _find(value: Any) -> list[Entry]:
    """Return the tasks, each with the skill of the file if it has only one."""
    if not isinstance(value, dict) or not {"skills", "tasks"} <= value.keys():
        return []
    paths = [path for path in as_list(value["skills"]) if isinstance(path, str)]
    name = PurePosixPath(paths[0]).name if len(paths) == 1 else ""
    own = {"skill": name} if name.strip(".") else {}
    return [
        Entry(path, {**own, **task} if isinstance(task, dict) else task)
        for path, task in listed(value, "tasks")
    ]


ADAPTER = Adapter(
    tool="caliper",
    about="caliper-eval 0.21.0",
    places=("*.eval.{yaml,yml}",),
    find=_find,
    shape=_SHAPE,
)
