"""Alibaba's skill-up: ``evals/cases/*.yaml``, with the defaults of ``evals/eval.yaml``.

Read: ``docs/guide/writing-evals.md`` of https://github.com/alibaba/skill-up at 0bc8f6d (November
2026), and its examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Keys, Reader
from pytest_upskill.cases.adapters.draft import Draft, Weight, an_object, as_list, left_out, merged
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks import AnyCheck

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


def _rules(rule: object, *, negate: bool = False) -> Draft:
    """Read a rule of a judge by code; of those for failure, none may hold."""
    return make.sum_of(partial(_rule, negate=negate), [*an_object(rule).items()])


def _rule(rule: tuple[str, Any], *, negate: bool) -> make.Checks:
    kind, value = rule
    if kind == "exit_code":
        return ()
    if kind not in {"output_contains", "output_matches"}:
        raise left_out(f"{kind}: what an agent does is not checked")
    read = make.patterns if kind == "output_matches" else _literals
    checks: list[AnyCheck] = []
    for which, texts in an_object(value).items():
        if negate and (which == "not" or (which == "all" and len(as_list(texts)) > 1)):
            raise left_out(f"{kind}: one text is enough, which no check here can say")
        checks += read(texts, negate=negate or which == "not", any_of=which == "any")
    return checks


def _judge(value: object) -> Draft:
    given = an_object(value)
    if given.get("type") == "script":
        raise left_out("script: its script is not run")
    success = make.sum_of(_rules, given.get("success"))
    failure = make.sum_of(partial(_rules, negate=True), given.get("failure"))
    return merged(success, failure, make.statements("").read(given.get("criteria")))


def _find(value: Any) -> list[Entry]:
    is_case = isinstance(value, dict) and isinstance(value.get("input"), dict)
    return [Entry((), value)] if is_case else []


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the id of a case, which is the name of its file, and the defaults of its suite."""
    found: Any = object_in(path.parent.parent / "eval.yaml")
    for key in ("cases", "defaults", "expect"):
        found = found.get(key) if isinstance(found, dict) else None
    return {"id": path.stem} | ({"defaults": found} if isinstance(found, dict) else {})


ADAPTER = Adapter(
    tool="skill-up",
    about="https://alibaba.github.io/skill-up/guide/writing-evals, November 2026",
    places=("evals/cases/**/*.{yaml,yml}",),
    find=_find,
    keys={
        "id": keys.NAME,
        "input": {
            "prompt": keys.PROMPT,
            "turns": keys.FURTHER_TURNS,
        },
        "expect": _EXPECT,
        "defaults": _EXPECT,
        "judge": Reader("rules, or criteria for a judge", _judge),
        "context": {
            "files repo_fixture": keys.WORKSPACE,
            "git": keys.lacks("its history is not made"),
        },
        "constraints": {"max_turns": keys.MAX_TURNS},
    },
    beside=_beside,
)
