"""Tools with small formats: caliper, skill-up and tessl.

- caliper: ``*.eval.yaml`` with ``tasks``. Read: ``caliper/schema/spec.py`` of caliper-eval 0.21.0.
- Alibaba's skill-up: ``evals/cases/*.yaml``, with the defaults of ``evals/eval.yaml``. Read:
  ``docs/guide/writing-evals.md`` of https://github.com/alibaba/skill-up at 0bc8f6d (November 2026),
  and its examples.
- tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``. Read:
  https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October 2026),
  and the scenarios of tiles in its registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Keys, Reader, entries_at
from pytest_upskill.cases.adapters.draft import Weight, an_object, as_list, left_out
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks.result import TextCheck


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


def _with_criteria(path: Path) -> Mapping[str, Any]:
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


_literals = partial(make.literals, ignore_case=False)


def _in_file(value: Any) -> make.Checks:
    given = an_object(value)
    return make.in_file(given.get("path"), _literals(given.get("content")))


_EXPECT: Keys = {
    "must_contain": Reader("texts that must be in the answer", _literals),
    "must_not_contain": Reader("texts that must not", partial(_literals, negate=True)),
    "files_exist": Reader("files that an agent should leave", make.file_exists),
    "file_contains": Reader("texts in them", _in_file, as_list),
    "files_not_exist": Reader("files that it should not", make.files_gone),
    "golden_file": keys.unmeasured("the answer is not compared with a file", Weight.LEFT_OUT),
}
_SEARCHES: Mapping[str, Callable[..., Sequence[TextCheck]]] = {
    "output_contains": _literals,
    "output_matches": make.patterns,
}


def _rule(rule: object, *, negate: bool = False) -> make.Checks:
    """Yield the checks of a rule of a judge by code; of those for failure, none may hold."""
    for kind, value in an_object(rule).items():
        if kind not in {*_SEARCHES, "exit_code"}:
            raise left_out(f"{kind}: what an agent does is not checked", is_limit=negate)
        for which, texts in an_object(value).items() if kind in _SEARCHES else ():
            is_not = which == "not"
            if negate and (is_not or (which == "all" and len(as_list(texts)) > 1)):
                what = f"{kind}: one text is enough, which no check here can say"
                raise left_out(what, is_limit=negate)
            yield from _SEARCHES[kind](texts, negate=negate or is_not, any_of=which == "any")


def _kind_of_judge(value: object) -> make.Checks:
    if value == "script":
        raise left_out("its script is not run")
    return ()


def _of_input(value: Any) -> list[Entry]:
    is_case = isinstance(value, dict) and isinstance(value.get("input"), dict)
    return [Entry((), value)] if is_case else []


def _with_defaults(path: Path) -> Mapping[str, Any]:
    """Return the id of a case, which is the name of its file, and the defaults of its suite."""
    found: Any = object_in(path.parent.parent / "eval.yaml")
    for key in ("cases", "defaults", "expect"):
        found = found.get(key) if isinstance(found, dict) else None
    return {"id": path.stem} | ({"defaults": found} if isinstance(found, dict) else {})


SKILL_UP = Adapter(
    tool="skill-up",
    about="https://alibaba.github.io/skill-up/guide/writing-evals, November 2026",
    places=("evals/cases/**/*.{yaml,yml}",),
    find=_of_input,
    keys={
        "id": keys.NAME,
        "input": {"prompt": keys.PROMPT, "turns": keys.FURTHER_TURNS},
        "expect defaults": _EXPECT,
        "judge": {
            "type": Reader("left out: `script`", _kind_of_judge),
            "success": Reader("rules of which all must hold", _rule, as_list),
            "failure": Reader("rules of which none may", partial(_rule, negate=True), as_list),
            "criteria": make.statements("statements for a judge"),
        },
        "context": {
            "files repo_fixture": keys.WORKSPACE,
            "git": keys.unmeasured("its history is not made", Weight.LACKS),
        },
        "constraints": {"max_turns": keys.MAX_TURNS},
    },
    beside=_with_defaults,
)
