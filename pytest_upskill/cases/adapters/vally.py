"""Microsoft's Vally: ``eval.yaml`` with ``stimuli`` and their graders.

Read: https://microsoft.github.io/vally/reference/eval-spec/ and the pages of its graders, version
0.13 (August 2026), and the suites of hve-core, GitHub-Copilot-for-Azure and
azure-functions-skills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from shlex import join
from typing import Annotated, Any

from pydantic import Field

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape
from pytest_upskill.cases.adapters.choice import Choice, names_in
from pytest_upskill.cases.adapters.fields import Name, NeedsAgent, Prompt
from pytest_upskill.cases.adapters.graders import (
    BUDGET,
    BY_NAME,
    NOT_CHECKED,
    RUBRIC,
    SHELL,
    Grader,
    called,
    file_exists,
    files_gone,
    in_file,
    judged,
    literals,
    not_called,
    patterns,
    tools_named,
)
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.checks.command import RunsCommand
from pytest_upskill.checks.result import Check

_OF_TEXT = ("contains", "not-contains", "matches", "not-matches")
_HEALTH = ("completed", "exit-success", "error-count")
"""Graders of the agent's session: trouble in one is missing data here."""
_BUDGETS = ("wall-time", "tool-call-count", "token-usage", "turn-count")

_Config = dict[str, Any]


class _VallyGrader(Grader):
    measured = (
        "graders of the answer, files, commands and calls; `prompt` is for a judge, "
        "`skill-invocation` a trigger; left out: budgets, arguments by name"
    )
    config: _Config = Field(default_factory=dict)

    def read(self) -> Draft:
        source, _, kind = self.type.partition("-")
        if source in {"output", "file"} and kind in _OF_TEXT:
            found = self._of_text(kind)
            of_file = source == "file"
            return Draft(checks=in_file(self.config.get("path"), found) if of_file else (*found,))
        if self.type in _READERS:
            return _READERS[self.type](self.config)
        if self.type in _HEALTH:
            return NOTHING
        raise ValueError(BUDGET if self.type in _BUDGETS else NOT_CHECKED)

    def _of_text(self, kind: str) -> Sequence[Check]:
        negate = kind.startswith("not-") != bool(self.config.get("negate"))
        if kind.endswith("matches"):
            return patterns(self.config.get("pattern"), negate=negate)
        text = self.config.get("substring", self.config.get("content"))
        return literals(text, ignore_case=not self.config.get("case_sensitive"), negate=negate)


def _judged(config: _Config) -> Draft:
    # Without a rubric of its own, it has that of the stimulus.
    rubric = config.get("prompt")
    return Draft(checks=judged(rubric, prefix=RUBRIC)) if rubric else NOTHING


def _invoked(config: _Config) -> Draft:
    required, disallowed = (tuple(names_in(config.get(key))) for key in ("required", "disallowed"))
    return Draft(choice=Choice(expected=required, forbidden=disallowed))


def _command(config: _Config) -> Draft:
    command = join(map(str, (config.get("command"), *config.get("args", ()))))
    return Draft(
        checks=(RunsCommand(command=command, exit_code=config.get("expected_exit_code", 0)),)
    )


def _called(config: _Config) -> Draft:
    total = NOTHING
    for key, make in (("required", called), ("disallowed", not_called)):
        for each in config.get(key) or ():
            if {"args", "path"} & each.keys():
                total += Draft(left_out=(f"tool-calls: {BY_NAME}",))
                continue
            names = tools_named(each["name"]) if "name" in each else SHELL
            total += Draft(checks=(make(names, str(each.get("command", ""))),))
    return total


_READERS: Mapping[str, Callable[[_Config], Draft]] = {
    "file-exists": lambda config: Draft(checks=file_exists(config.get("path"))),
    "file-not-exists": lambda config: Draft(checks=files_gone(config.get("path"))),
    "prompt": _judged,
    "run-command": _command,
    "shell-command-invoked": _called,
    "skill-invocation": _invoked,
    "tool-calls": _called,
}


def _rubric(value: object) -> Draft:
    return Draft(checks=judged(value)) if value else NOTHING


def _tags(value: object) -> Draft:
    given = value if isinstance(value, dict) else {}
    words = (str(given[key]) for key in ("category", "area", "tier") if key in given)
    return Draft(skills=(str(given["skill"]),) if given.get("skill") else (), tags=tuple(words))


def _environment(value: object) -> Draft:
    given = value if isinstance(value, dict) else {}
    skills = (plain_name(str(path)) for path in given.get("skills") or ())
    return Draft(
        skills=tuple(dict.fromkeys(skills)),
        files=tuple(
            (str(file.get("dest") or ""), str(file["src"]))
            for file in given.get("files") or ()
            if isinstance(file, dict) and "src" in file
        ),
        commands=tuple(map(str, given.get("commands") or ())),
    )


class Stimulus(Shape):
    """A question with its graders."""

    name: Name = NOTHING
    prompt: Prompt = NOTHING
    turns: Annotated[Draft, NeedsAgent("has no further turns")] = NOTHING
    graders: tuple[_VallyGrader, ...] = ()
    rubric: Annotated[Draft, Reads(_rubric, "statements for a judge")] = NOTHING
    tags: Annotated[Draft, Reads(_tags, "`skill`, and words for `-k`")] = NOTHING
    environment: Annotated[Draft, Reads(_environment, "the skills and files of the case")] = NOTHING

    def draft(self) -> Draft:
        """Return the case; of several skills in its environment, its tag names the tested one."""
        draft = super().draft()
        tested = self.tags.skills or (draft.skills if len(draft.skills) == 1 else ())
        return replace(draft, skills=tested)


def _find(value: Any) -> list[Entry]:
    """Return the stimuli, each with the environment and the tags of the whole file."""
    stimuli = value.get("stimuli") if isinstance(value, dict) else None
    shared = {key: value[key] for key in ("environment", "tags") if stimuli and key in value}
    return [
        Entry(("stimuli", index), _merged(shared, stimulus))
        for index, stimulus in enumerate(stimuli if isinstance(stimuli, list) else ())
    ]


def _merged(shared: Mapping[str, Any], stimulus: Any) -> Any:
    if not isinstance(stimulus, dict):
        return stimulus
    return {
        **stimulus,
        **{key: {**part, **(stimulus.get(key) or {})} for key, part in shared.items()},
    }


ADAPTER = Adapter(
    tool="Vally",
    about="https://microsoft.github.io/vally/reference/eval-spec/, version 0.13",
    places=("*eval*.{yaml,yml}", "stimuli/*.{yaml,yml}"),
    find=_find,
    shape=Stimulus,
    example="""\
stimuli:
  - name: names-the-column
    prompt: Which column has missing values?
    graders:
      - type: output-matches
        config: {pattern: "(?i)price"}
      - type: skill-invocation
        config: {required: [csv]}
""",
)
