"""Tools with small formats: caliper, tables of prompts in CSV, and tessl.

- caliper: ``*.eval.yaml`` with ``tasks``. Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
- ``prompts.csv``: a table of prompts with ``should_trigger``, and what is expected in words. Read:
  https://developers.openai.com/blog/eval-skills (January 2026), and the files of 10 of the 19
  public repositories that have one.
- tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``. Read:
  https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October 2026),
  and the scenarios of tiles in its registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, listed
from pytest_upskill.cases.adapters.choice import Choice
from pytest_upskill.cases.adapters.documents import object_in
from pytest_upskill.cases.adapters.draft import Draft, Flaw, Weight, an_object, as_list
from pytest_upskill.checks import AnyCheck


def _activates(value: object) -> Draft:
    """Read the skills that should be taken; an empty list means none."""
    names = as_list(value)
    if not all(map(keys.is_text, names)):
        raise Flaw("must be a list of names of skills")
    return Draft(choice=Choice(expected=tuple(names)) if names else Choice(nothing=True))


def _tasks(value: Any) -> list[Entry]:
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


CALIPER = Adapter(
    tool="caliper",
    about="caliper-eval 0.21.0",
    places=("*.eval.{yaml,yml}",),
    find=_tasks,
    keys={
        "id|name": keys.NAME,
        "prompt": keys.PROMPT,
        "skill": keys.SKILL,
        "expect": make.statements("a statement for a judge", "The answer fits this: "),
        "assert": keys.unmeasured("its Python code is not run", Weight.LEFT_OUT),
        "activates": Reader("skills to choose; `[]` for none", _activates, reads_empty=True),
        "setup": Reader("a command before an agent starts", lambda e: Draft(commands=(str(e),))),
        "history": keys.unmeasured("a single answer continues no session"),
    },
)


_SEPARATORS = re.compile("[;\uff1b|]")
"""What stands between statements; one is the semicolon of Chinese."""


def _behaviors(prefix: str) -> Reader:
    """Return how a column of statements is read."""

    def read(value: object) -> Iterable[AnyCheck]:
        parts = [part for part in _SEPARATORS.split(str(value)) if part.strip()]
        return make.judged(parts, prefix=prefix) if parts else ()

    return Reader(f"“{prefix}…”; several with `;` or `|` between them", read)


def _rows(value: Any) -> list[Entry]:
    rows = listed(value)
    is_table = all(isinstance(row, dict) and {*map(type, row.values())} == {str} for _, row in rows)
    return rows if is_table else []


PROMPTS_CSV = Adapter(
    tool="prompts.csv",
    about="https://developers.openai.com/blog/eval-skills, January 2026",
    places=("*{prompts,eval,evals,triggers,cases}*.csv",),
    find=_rows,
    keys={
        "prompt|query|input": keys.PROMPT,
        "id|name": keys.NAME,
        "skill": keys.SKILL,
        "should_trigger|expect_trigger|should_activate": keys.SHOULD,
        "expected_skill": keys.EXPECTED_SKILL,
        "expected_behavior|expected_behaviors|expect_behavior|key_checks": _behaviors(
            "The answer fits this: "
        ),
        "required_behaviors": _behaviors("The answer does this: "),
        "forbidden_behaviors|forbid_behaviors": _behaviors("The answer does not do this: "),
    },
)


def _checklist(value: object) -> Iterable[AnyCheck]:
    criteria = map(an_object, as_list(value))
    return make.judged([str(e.get("description") or e.get("name") or "") for e in criteria])


def _scenario(value: Any) -> list[Entry]:
    return [Entry((), value)] if isinstance(value, dict) else []


def _with_criteria(path: Path) -> Mapping[str, Any]:
    """Return the criteria beside a task."""
    criteria = object_in(path.with_name("criteria.json"))
    return {"name": path.parent.name, "checklist": criteria.get("checklist")} if criteria else {}


TESSL = Adapter(
    tool="tessl",
    about="https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios",
    places=("evals/*/task*.md",),
    find=_scenario,
    keys={
        "name": keys.NAME,
        "body": keys.PROMPT,
        "checklist": Reader("statements for a judge", _checklist),
    },
    is_folder=True,
    beside=_with_criteria,
)
