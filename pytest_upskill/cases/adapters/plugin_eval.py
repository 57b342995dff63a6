"""``claude plugin eval``: a folder for each case, with ``prompt.md`` or ``case.yaml`` and graders.

Read: Claude Code 2.1.330 (its help, its loader and its schema of graders, November 2026) and
https://code.claude.com/docs/en/plugin-evals.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Part, Reader, is_at
from pytest_upskill.cases.adapters.choice import own_skill, skills_in
from pytest_upskill.cases.adapters.draft import Copied, Draft, Flaw, Weight, as_list, left_out
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks.calls import ToolOrder

_PLACES = ("{evals,*-evals,*_evals,*-eval,*_eval}/**/{prompt*.md,case*.yaml}",)
_ABSENT = frozenset({"not_contains", "count:0"})


def _regex(grader: make.Given) -> make.Checks:
    match, target = grader.get("match", "contains"), grader.get("target", "last_message")
    if match not in {"contains", *_ABSENT}:
        raise left_out(f"{match!r} is not counted")
    flags = str(grader.get("flags") or "")
    found = make.patterns(grader.get("pattern"), flags=flags, negate=match in _ABSENT)
    if isinstance(target, dict):
        return make.in_file(target.get("path"), found)
    if target != "last_message":
        raise left_out(f"its target is {target!r}, not the answer or a file")
    return found


def _llm(grader: make.Given) -> make.Checks:
    if grader.get("focus", "last_message") != "last_message":
        raise left_out("its judge looks at more than the answer")
    return make.judged(grader.get("criteria"), prefix=make.RUBRIC)


def _file_exists(grader: make.Given) -> make.Checks:
    if make.is_on(grader.get("exists", True)):
        return make.file_exists(grader.get("path"))
    return make.files_gone(grader.get("path"))


def _tool_used(grader: make.Given) -> Part:
    tool, pattern = str(grader.get("tool")), str(grader.get("input_match") or "")
    most = grader.get("max")
    if tool != "Skill":
        least = grader.get("min", int(most != 0))
        if not isinstance(least, int) or not isinstance(most, int | None):
            raise Flaw("'min' and 'max' must be whole numbers")
        return [make.called((tool,), pattern, least=least, most=most)]
    names = _skills_called(pattern)
    if not names:
        return Draft(choice=own_skill(should=most != 0))
    choice = skills_in(names, are_right=most != 0)
    return Draft(choice=choice, skills=names[:1] if most == 0 else ())


def _tool_order(grader: make.Given) -> make.Checks:
    ends = (grader.get("before"), grader.get("after"))
    given = [end if isinstance(end, dict) else {"tool": end} for end in ends]
    calls = [make.call_of((str(e.get("tool")),), str(e.get("input_match") or "")) for e in given]
    return [ToolOrder(calls=tuple(calls))]


def _indicator(grader: make.Given) -> str:
    """Return why a grader is left out that counts in one arm only."""
    is_indicator = grader.get("arm") == "with-only" and grader.get("tool") != "Skill"
    return "an indicator of the arm with the plugin, outside the score" if is_indicator else ""


_GRADERS = keys.graders(
    "`regex`, `llm`, `file_exists`, `tool_used`, `tool_order`; calls of `Skill` are triggers; "
    "left out: graders of one arm, of the trace, `baseline`, `count:N`",
    {
        "regex": _regex,
        "llm": _llm,
        "file_exists": _file_exists,
        "tool_used": _tool_used,
        "tool_order": _tool_order,
    },
    unless=_indicator,
)


def _skills_called(pattern: str) -> tuple[str, ...]:
    """Return the names of the skills in a pattern of a call's input that it matches."""
    if not pattern:
        return ()
    words = list(dict.fromkeys(re.findall(r"[A-Za-z0-9][\w-]*", pattern)))
    search = re.compile(make.python_pattern(pattern)).search
    plugins = ("", *(f"{word}:" for word in words))
    return tuple(
        word for word in words if any(search(f'{{"skill":"{plugin}{word}"}}') for plugin in plugins)
    )


def _scaffold(script: object) -> Draft:
    name = str(script)
    command = f"bash {quote(name)} && rm {quote(name)}"
    return Draft(workspace=(Copied(name, name),), commands=(command,))


_BODIES = {"llm": "criteria", "baseline": "criteria", "regex": "pattern"}
"""Keys that the text of a grader's file stands for, by the type of the grader."""


def _beside(path: Path, _: Any) -> Mapping[str, Any]:
    """Return what else the folder of a case has: its name, its ``case.yaml`` and its graders."""
    given = {"name": path.parent.name, **object_in(path.with_name("case.yaml"))}
    files = {file.name: object_in(file) for file in sorted(path.parent.glob("graders/*.md"))}
    typed = (each for each in files.values() if each.get("type"))
    bodies = ({_BODIES.get(each["type"], ""): each["body"], **each} for each in typed)
    found = [*as_list(given.get("graders")), *bodies]
    # Beside a grader, a file without a type is another text, such as a README.
    untyped = "" if found or not is_at(path.as_posix(), *_PLACES) else next(iter(files), "")
    return {**given, "graders": found, "untyped": untyped}


def _untyped(name: str) -> NoReturn:
    raise Flaw(f"graders/{name}: no 'type' (write type: llm)")


def _find(value: Any) -> list[Entry]:
    is_case = isinstance(value, dict) and ("body" in value or "schema_version" in value)
    return [Entry((), value)] if is_case else []


ADAPTER = Adapter(
    tool="claude plugin eval",
    about="https://code.claude.com/docs/en/plugin-evals, Claude Code 2.1.330",
    places=_PLACES,
    find=_find,
    keys={
        "name": keys.NAME,
        "body": keys.PROMPT,
        "execution": {"prompt": keys.PROMPT, "max_turns": keys.MAX_TURNS},
        "max_turns": keys.MAX_TURNS,
        "context": {
            "add_dirs": keys.FILES,
            "scaffold_script": Reader("a script that makes the workspace", _scaffold),
            "history_file": keys.unmeasured("a single answer continues no session", Weight.LACKS),
        },
        "graders": _GRADERS,
        "untyped": Reader("", _untyped),
        "tags": keys.TAGS,
    },
    is_folder=True,
    beside=_beside,
)
