"""From what an adapter reads to cases, with ids, skills, files, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_upskill.cases.adapters.choice import Choice, Unclear, choice_in, trigger_of
from pytest_upskill.cases.adapters.draft import Draft, Weight, misspelled
from pytest_upskill.cases.adapters.reading import ReadEntry, Reading
from pytest_upskill.cases.skill import Case, Trigger, plain_name
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import BadFile, JsonPath, Problem
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.cases.statements import MARK_KEY, with_marks
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.calls import ToolCalled
from pytest_upskill.checks.files import InFile, Setup, WorkspaceFile
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.result import Check

_NO_SKILL = "no skill near this file is called {!r}"
_UNREADABLE = "cannot be read"
_NOTHING_TO_CHECK = "nothing to check: add 'assertions'"
_NO_PROMPT = "no prompt: add 'prompt'"

_PROMPT_FILE = re.compile(r"[\w./-]+\.(?:md|txt|prompt)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A skill that cases belong to."""

    folder: Path
    names: Collection[str]
    """Its own name and the name of its folder."""
    read_files: Callable[[str], Sequence[WorkspaceFile]]
    """Reads an input file or the files of a folder; raises Unreadable."""

    def is_called(self, name: str) -> bool:
        """Return whether a name means this skill, by `plain_name`."""
        return plain_name(name) in map(plain_name, self.names)


FindOwner = Callable[[str], Owner | None]
"""Returns the skill with a given name, None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCases:
    """The cases of a case file."""

    cases: Sequence[Case]
    owners: Sequence[Owner]
    """The skill of each case; empty if no skill is found for any case."""
    warnings: Sequence[Problem]
    """Parts that were not read but could matter."""


def read_cases(reading: Reading, *, owner: Owner | None, find: FindOwner) -> FileCases:
    """Make the cases of a case file.

    An entry that cannot be read becomes a skipped case and a warning.

    Args:
        reading: What its adapter reads.
        owner: The skill that the file belongs to; None if its cases name their skills.
        find: Finds the skill that a case names.

    Raises:
        BadFile: No entry can be read; it lists all problems.
    """
    document, entries = reading.document, reading.entries
    warnings = [*reading.flaws_beside_cases()]
    ids = case_ids([(each.draft.name, each.draft.prompt, _content(each)) for each in entries])
    cases: list[Case] = []
    owners: list[Owner | None] = []
    problems: list[Problem] = []
    for each, name in zip(entries, ids, strict=True):
        case_owner, why_no_owner = _owner_of(each.draft, owner, find)
        case = Case(id="", input="", checks=())
        found = reading.mistakes(each)
        if not found:
            try:
                case = _case(each, case_owner, find, why_no_owner)
            except ValueError as error:
                marks = (*each.entry.path, MARK_KEY)
                path = marks if marks in document.offsets else each.entry.path
                found = [document.problem(path, str(error))]
        if found:
            why = "; ".join(f"{problem.where}: {problem.what}" for problem in found)
            case = replace(case, skip=f"{_UNREADABLE}: {why}")
            problems += found
        line, column = document.line_column(document.offsets[each.entry.path].value)
        cases.append(replace(case, id=name, line=line, column=column))
        owners.append(case_owner)
    if problems and all((case.skip or "").startswith(_UNREADABLE) for case in cases):
        raise BadFile(problems)
    warnings += (replace(each, what=f"{each.what} (the case is skipped)") for each in problems)
    warnings += [*_misspelled_keys(reading, cases), *_left_out(reading, cases)]
    warnings += (replace(each, is_hint=True) for each in reading.unread())
    if not cases:
        warnings.append(Problem(what="contains no cases"))
    any_owner = next(filter(None, owners), None)
    return FileCases(
        cases=tuple(cases),
        owners=tuple(each or any_owner for each in owners) if any_owner else (),
        warnings=tuple(warnings),
    )


def _content(each: ReadEntry) -> Mapping[str, Any]:
    value = each.entry.value
    return value if isinstance(value, dict) else {"": value}


def _owner_of(
    draft: Draft, file_owner: Owner | None, find: FindOwner
) -> tuple[Owner | None, str | None]:
    """Return the skill of a case, and why the case cannot run with it; None if it can."""
    if (count := len(draft.skills)) > 1:
        return file_owner, f"skill: it needs {count} skills at once, but each skill runs alone"
    if file_owner and all(map(file_owner.is_called, draft.skills)):
        return file_owner, None
    if draft.skills:
        (name,) = draft.skills
        owner = find(name)
        reason = None if owner else f"skill: {_NO_SKILL.format(name)}"
        return owner or file_owner, reason
    expected = draft.choice.expected if draft.choice else ()
    found = next(filter(None, map(find, expected)), None)
    reason = _NO_SKILL.format(expected[0]) if expected else "names no skill: add 'skill'"
    return found, None if found else reason


def _case(each: ReadEntry, owner: Owner | None, find: FindOwner, why_no_owner: str | None) -> Case:
    """Make a case, without its id and line, of what its adapter read.

    Raises:
        ValueError: It contradicts itself, or marks a statement that it does not have.
    """
    draft = each.draft
    checks = draft.checks or draft.reference
    case = with_marks(Case(id="", input="", checks=tuple(checks)), each.entry.value.get(MARK_KEY))
    kept, stated = _without_choice(case.checks, owner, find)
    skips = [*draft.whys(Weight.SKIPPED), *draft.whys(Weight.LACKS), *filter(None, [case.skip])]
    if (left_out := draft.whys(Weight.LEFT_OUT)) and all(map(_is_negative, kept)):
        kept = []
        skips += [] if draft.choice else left_out
    trigger = None
    implied = draft.implied if draft.implied and not (draft.implied.nothing and kept) else None
    if choice := draft.choice or stated or implied:
        try:
            trigger = _trigger(choice, owner, find)
        except Unclear as error:
            skips.append(str(error))
    if why_no_owner and not (trigger and trigger.nothing):
        skips, trigger = [why_no_owner], None
    if not kept and not draft.process and trigger is None:
        skips.append(_NOTHING_TO_CHECK)
    if not draft.prompt:
        skips.append(_NO_PROMPT)
    files, why_no_files = _input_files(draft, owner)
    workspace, why_no_workspace = _workspace(draft, owner)
    skips += [*why_no_files, *why_no_workspace]
    case = replace(
        case,
        input="\n\n".join(filter(None, (draft.context, _prompt(draft, owner)))),
        checks=tuple(kept),
        files=files,
        process=draft.process,
        workspace=workspace,
        setup=Setup(git=draft.git, commands=draft.commands),
        tags=draft.tags,
        skip=skips[0] if skips else None,
        trigger=trigger if draft.prompt else None,
    )
    # Alone it is a limit of the author's tool, and does not say that the case needs an agent.
    return replace(case, max_turns=draft.max_turns) if case.agent_key else case


def _is_negative(check: AnyCheck) -> bool:
    inner = check.check if isinstance(check, InFile) else check
    if isinstance(inner, ToolCalled):
        return not inner.least
    return isinstance(inner, Check) and inner.is_negative


def _without_choice(
    checks: Sequence[AnyCheck], owner: Owner | None, find: FindOwner
) -> tuple[list[AnyCheck], Choice]:
    """Return checks without the statements that are only about the choice of a skill, and these.

    No answer can show what they state.
    """

    def is_skill(name: str) -> bool:
        return (owner is not None and owner.is_called(name)) or find(name) is not None

    kept: list[AnyCheck] = []
    stated = Choice()
    for check in checks:
        choice = choice_in(check.statement, is_skill) if isinstance(check, Judge) else None
        if choice is None:
            kept.append(check)
        else:
            stated |= choice
    return kept, stated


def _trigger(choice: Choice, owner: Owner | None, find: FindOwner) -> Trigger | None:
    names = owner.names if owner else ()
    trigger = trigger_of(choice, names, lambda name: find(name) is not None)
    if owner is None and trigger == Trigger(should=False):
        # It names no skill because none should be chosen: it tests any skill of the file.
        return Trigger(should=False, nothing=True)
    return trigger


def _prompt(draft: Draft, owner: Owner | None) -> str:
    """Return the prompt, from its file if the case names one."""
    if owner and _PROMPT_FILE.fullmatch(draft.prompt):
        with suppress(Unreadable, OSError):
            (file,) = owner.read_files(draft.prompt)
            if not file.binary and file.text.strip():
                return file.text.strip()
    return draft.prompt


def _input_files(draft: Draft, owner: Owner | None) -> tuple[tuple[WorkspaceFile, ...], list[str]]:
    """Return the files of the question, and why the case is skipped if some cannot be read."""
    files = [*draft.inputs]
    skips = []
    for given in draft.files if owner else ():
        assert owner is not None
        shown, name = given if isinstance(given, tuple) else ("", given)
        try:
            read = owner.read_files(name)
        except Unreadable as error:
            skips.append(f"files: {error}")
            continue
        files += [replace(file, name=shown) for file in read] if shown and len(read) == 1 else read
    return tuple({file.name: file for file in files}.values()), skips


def _workspace(draft: Draft, owner: Owner | None) -> tuple[tuple[WorkspaceFile, ...], list[str]]:
    """Return what an agent finds besides them, and why some of it cannot be read."""
    files = [*draft.workspace]
    for name, source in draft.copies if owner else ():
        assert owner is not None
        plain = source.removeprefix("./").rstrip("/")
        try:
            found = owner.read_files(plain)
        except (Unreadable, OSError) as error:
            return (), [f"workspace: {error}"]
        if not found:
            why = "the arm without the skill must not get them: move them out of its folder"
            return (), [f"workspace: {source!r} has only files of the skill, and {why}"]
        for file in found:
            inner = file.name.removeprefix("" if plain == "." else plain).strip("/")
            place = "/".join(filter(None, (name, inner))) or PurePosixPath(plain).name
            files.append(replace(file, name=place))
    return tuple(files), []


def _misspelled_keys(reading: Reading, cases: Sequence[Case]) -> Iterator[Problem]:
    """Yield a problem for each key that may be why a case lacks its question or its checks."""
    known = reading.adapter.shape.known
    for each, case in zip(reading.entries, cases, strict=True):
        if case.skip in (_NOTHING_TO_CHECK, _NO_PROMPT):
            for key in each.entry.value:
                path = (*each.entry.path, key)
                is_known = key in known or path not in reading.document.offsets
                if not is_known and (hint := misspelled(key, known)):
                    what = f"unknown key{hint} (the case is skipped)"
                    yield reading.document.problem(path, what, key=True)


def _left_out(reading: Reading, cases: Sequence[Case]) -> Iterator[Problem]:
    """Yield a problem for each reason why checks are left out, with the number of their cases.

    It is a hint if all of these cases are measured by other checks.
    """
    found: dict[str, list[tuple[JsonPath, bool]]] = {}
    for each, case in zip(reading.entries, cases, strict=True):
        for reason in dict.fromkeys(each.draft.whys(Weight.LEFT_OUT)):
            found.setdefault(reason, []).append((each.entry.path, case.skip == reason))
    for reason, entries in found.items():
        skipped = sum(is_skipped for _, is_skipped in entries)
        count = f"{len(entries)} case{'s' * (len(entries) > 1)}"
        which = f", {skipped} skipped" if skipped else ""
        what = f"{reason} (left out of {count}{which})"
        problem = reading.document.problem(entries[0][0], what)
        yield replace(problem, is_hint=not skipped)
