"""Tools with small formats: caliper and tessl.

- caliper: ``*.eval.yaml`` with ``tasks``. Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
- tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``. Read:
  https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October 2026),
  and the scenarios of tiles in its registry.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, entries_at
from pytest_upskill.cases.adapters.draft import Weight, an_object, as_list
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.cases.source.formats import object_in


def _tasks(value: Any) -> list[Entry]:
    """Return the tasks, each with the skill of the file if it has only one."""
    if not isinstance(value, dict) or not {"skills", "tasks"} <= value.keys():
        return []
    names = [plain_name(path) for path in as_list(value["skills"]) if isinstance(path, str)]
    own = {"skill": names[0]} if len(names) == 1 and names[0] else {}
    return [
        Entry(path, {**own, **task} if isinstance(task, dict) else task)
        for path, task, _ in entries_at(value, "tasks")
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
        "activates": keys.EXPECTED_SKILL,
        "setup": Reader("commands before an agent starts", keys.commands_in),
        "history": keys.unmeasured("a single answer continues no session"),
    },
)


def _criterion(value: Any) -> make.Checks:
    given = an_object(value)
    return make.judged(given.get("description") or given.get("name"))


def _with_criteria(path: Path, _: Any) -> Mapping[str, Any]:
    """Return the criteria beside a task."""
    criteria = object_in(path.with_name("criteria.json"))
    return {"name": path.parent.name, "checklist": criteria.get("checklist")} if criteria else {}


TESSL = Adapter(
    tool="tessl",
    about="https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios",
    places=("evals/*/task*.md",),
    find=lambda value: [Entry((), value)] if isinstance(value, dict) else [],
    keys={
        "name": keys.NAME,
        "body": keys.PROMPT,
        "checklist": Reader("statements for a judge", _criterion, as_list),
    },
    is_folder=True,
    beside=_with_criteria,
)
