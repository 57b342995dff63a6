"""From what an adapter reads to cases, with ids, skills, files, and what is wrong with them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from pytest_upskill.cases.adapters.adapter import Entry, known, spelled
from pytest_upskill.cases.adapters.choice import (
    NO_SKILL,
    ExpectedChoice,
    UnknownSkill,
    choice_in,
    trigger_of,
)
from pytest_upskill.cases.adapters.draft import Copied, Draft, Weight
from pytest_upskill.cases.adapters.keys import WORKSPACE
from pytest_upskill.cases.adapters.registry import Reading, compared_files, is_answer
from pytest_upskill.cases.skill import MARK_KEY, Case, GateRule, Trigger, plain_name, with_marks
from pytest_upskill.cases.skill_files import SkillFolder
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.checks import AnyCheck, CheckError
from pytest_upskill.checks.calls import ToolCalled
from pytest_upskill.checks.files import InFile, Setup, WorkspaceFile
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import TextCheck
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import counted

_NO_SKILL = "does not say which skill it tests: add 'skill' (Vally: 'tags.skill')"

_CASE_INPUT = re.compile(r"(?<![\w.-])(?:evals|files|fixtures)/[\w./-]*\w")
"""Files for cases in a question, of which some have an absolute path that other machines lack."""

_PROMPT_FILE = re.compile(r"[\w./-]+\.(?:md|txt|prompt)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCases:
    """The cases of a case file."""

    cases: Sequence[Case] = ()
    owners: Sequence[SkillFolder] = ()
    """The skill of each case; empty if no skill is found for any case."""
    warnings: Sequence[Problem] = ()
    """Parts that were not read but could matter."""
    gate: GateRule = field(default_factory=GateRule)
    read_as: str = ""
    """The tool whose format the file has; "" where the file's place says so."""
    suite: Path | None = None
    """The folder whose files are one suite with the file; None if it is by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMaker:
    """Maker of the cases of one file."""

    reading: Reading
    """What the adapter of the file reads."""
    owner: SkillFolder | None
    """The skill that the file belongs to; None if its cases name their skills."""
    find: Callable[[str], SkillFolder | None]
    """Returns the skill that a case names, None if there is none."""

    def file(self) -> FileCases:
        """Make the cases; an entry that cannot be read becomes a skipped case and a warning.

        Raises:
            BadFile: No entry can be read; it lists all problems.
        """
        reading, entries = self.reading, self.reading.entries
        if flaws := [*reading.flaws(), *reading.of_own_format()]:
            raise BadFile(flaws)
        made = [self._case(each) for each in entries]
        mistakes = [problem for _, _, found in made for problem in found]
        if mistakes and all(found for _, _, found in made):
            raise BadFile(mistakes)
        ids = case_ids([(each.draft.name, each.draft.prompt, each.value) for each in entries])
        cases = [replace(case, id=name) for (case, _, _), name in zip(made, ids, strict=True)]
        any_owner = next((owner for _, owner, _ in made if owner), None)
        places = {each.where for each in mistakes}
        return FileCases(
            cases=tuple(cases),
            owners=tuple(owner or any_owner for _, owner, _ in made) if any_owner else (),
            warnings=(
                *(replace(each, what=f"{each.what} (the case is skipped)") for each in mistakes),
                *_left_out(reading, cases),
                *(each for each in reading.unread() if each.where not in places),
                *([] if cases else [Problem(what="contains no cases")]),
            ),
        )

    def _case(self, each: Entry) -> tuple[Case, SkillFolder | None, list[Problem]]:
        """Return a case without its id, its skill, and the mistakes in it."""
        document = self.reading.document
        line, column = document.place(each.path)
        owner, why_no_owner = self._owner_of(each.draft)
        case = Case(id="", input="", checks=(), line=line, column=column)
        mistakes = self.reading.mistakes(each)
        if not mistakes:
            try:
                return self._measured(case, each, owner, why_no_owner), owner, []
            except ValueError as error:
                marks = (*each.path, MARK_KEY)
                path = marks if marks in document.offsets else each.path
                mistakes = [document.problem(path, str(error))]
        why = "; ".join(f"{problem.where}: {problem.what}" for problem in mistakes)
        return replace(case, skip=f"cannot be read: {why}"), owner, mistakes

    def _owner_of(self, draft: Draft) -> tuple[SkillFolder | None, str]:
        """Return the skill of a case, and why the case cannot run with it, "" if it can."""
        if (count := len(draft.skills)) > 1:
            return self.owner, f"skill: it needs {count} skills at once, but each skill runs alone"
        own = map(plain_name, self.owner.names if self.owner else ())
        if self.owner and {*own}.issuperset(map(plain_name, draft.skills)):
            return self.owner, ""
        if draft.skills:
            owner = self.find(draft.skills[0])
            return owner or self.owner, "" if owner else f"skill: {_unknown(draft.skills[0])}"
        expected = [says.skill for says in draft.choice if says.skill and says.is_right]
        found = next(filter(None, map(self.find, expected)), None)
        unknown = next(iter(expected), self.reading.skill)
        reason = _unknown(unknown) if unknown else _NO_SKILL
        return found, "" if found else reason

    def _measured(
        self, case: Case, each: Entry, owner: SkillFolder | None, why_no_owner: str
    ) -> Case:
        """Return a case with what its adapter read.

        Raises:
            ValueError: It contradicts itself, or marks a statement that it does not have.
        """
        draft = each.draft
        given = draft.checks or draft.reference
        # Some files repeat a list under several keys, or what their suite says.
        given = tuple(check for index, check in enumerate(given) if check not in given[:index])
        case = with_marks(replace(case, checks=given), each.value.get(MARK_KEY))
        names = owner.names if owner else ()
        checks, stated = self._without_choice(case.checks, draft, names)
        if draft.checks:  # else they are the reference
            stated += self._without_choice(draft.reference, draft, names)[1]
        left_out = draft.whys(Weight.LEFT_OUT, Weight.LIMIT)
        if draft.whys(Weight.LEFT_OUT) and all(map(partial(_is_met, draft.prompt), checks)):
            checks = [*checks, *draft.reference] if draft.reference else []
        trigger, why_no_trigger = self._trigger(draft, stated, owner, has_checks=bool(checks))
        if trigger and trigger.nothing:
            why_no_owner = ""  # the case tests any skill of the file
        files, why_no_files = _read("files", draft.files, owner)
        readers = known(self.reading.adapter.keys)
        own = (key for key in each.value if readers.get(spelled(key)) is WORKSPACE)
        workspace, why_no_workspace = _read(next(own, "workspace"), draft.workspace, owner)
        why_skipped = (  # the first that is given counts
            why_no_owner,
            *draft.whys(Weight.SKIPPED, Weight.LACKS),
            case.skip,
            *([] if checks or draft.choice or stated else left_out),
            why_no_trigger,
            "" if checks or draft.process or trigger else "nothing to check: add assertions",
            "" if draft.prompt else "no prompt: add 'prompt', which must not be empty",
            *why_no_files,
            *why_no_workspace,
        )
        case = replace(
            case,
            input="\n\n".join(filter(None, (draft.context, _prompt(draft, owner)))),
            checks=tuple(checks),
            files=files if files or workspace else self._named_files(draft.prompt, owner),
            process=draft.process,
            workspace=workspace,
            setup=Setup(git=draft.git, commands=draft.commands),
            tags=draft.tags,
            skip=next(filter(None, why_skipped), None),
            trigger=trigger if draft.prompt and not why_no_owner else None,
        )
        # Alone it is a limit of the author's tool, and does not say that the case needs an agent.
        return replace(case, max_turns=draft.max_turns) if case.agent_key else case

    def _trigger(
        self, draft: Draft, stated: ExpectedChoice, owner: SkillFolder | None, *, has_checks: bool
    ) -> tuple[Trigger | None, str]:
        """Return which skill should be chosen, and why that cannot be measured, "" if it can.

        Args:
            draft: What the file says of the case.
            stated: What statements of the case say about the choice.
            owner: The skill of the case.
            has_checks: Whether the case expects something of the answer too.

        Raises:
            ValueError: The case contradicts itself.
        """
        # That a kind of case expects no skill says nothing where something else is expected.
        implied = () if has_checks and draft.implied == NO_SKILL else draft.implied
        choice = draft.choice or stated or implied
        try:
            trigger = trigger_of(choice, owner.names if owner else (), self._exists)
        except UnknownSkill as error:
            return None, _unknown(str(error))
        if owner is None and trigger == Trigger(should=False):
            # It names no skill because none should be chosen: it tests any of the file.
            trigger = Trigger(should=False, nothing=True)
        return trigger, ""

    def _without_choice(
        self, checks: Sequence[AnyCheck], draft: Draft, names: Iterable[str]
    ) -> tuple[list[AnyCheck], ExpectedChoice]:
        """Return checks without the statements that are only about the choice of a skill.

        No answer can show what they state, which is returned too. Statements that say more count
        for the choice of the case's own skill: another one may be used besides it.
        """
        is_said = bool(draft.choice or draft.implied)
        own = {"", *map(plain_name, names)}
        kept: list[AnyCheck] = []
        stated: ExpectedChoice = ()
        for check in checks:
            statement = check.statement if isinstance(check, Judge) else ""
            choice, is_all = choice_in(statement, self._exists, is_said=is_said)
            stated += tuple(e for e in choice if is_all or plain_name(e.skill or "") in own)
            kept += [] if is_all else [check]
        return kept, stated

    def _named_files(self, prompt: str, owner: SkillFolder | None) -> tuple[WorkspaceFile, ...]:
        """Return the files among the cases that only the question names, if none has an answer."""
        named = dict.fromkeys(_CASE_INPUT.findall(prompt)) if owner else ()
        answers = compared_files(self.reading.document) if named else ()
        files: list[WorkspaceFile] = []
        for path in named:
            with suppress(Unreadable, OSError):
                files += owner.read_files(path) if owner else ()
        parts = [part for file in files for part in (file.name, *PurePosixPath(file.name).parts)]
        return () if any(part in answers or is_answer(part) for part in parts) else tuple(files)

    def _exists(self, name: str) -> bool:
        return self.find(name) is not None


def _left_out(reading: Reading, cases: Sequence[Case]) -> Iterator[Problem]:
    """Yield a hint for each reason why checks are left out, with the number of their cases."""
    found = grouped(
        (reason, (each, case))
        for each, case in zip(reading.entries, cases, strict=True)
        for reason in dict.fromkeys(each.draft.whys(Weight.LEFT_OUT, Weight.LIMIT))
    )
    for reason, of_it in found.items():
        skipped = sum(case.skip == reason for _, case in of_it)
        which = f", {skipped} skipped" if skipped else ""
        what = f"{reason} (left out of {counted(len(of_it), 'case')}{which})"
        yield reading.document.problem(of_it[0][0].path, what, is_hint=True)


def _unknown(name: str) -> str:
    """Return that there is no skill of a name."""
    return f"no skill near this file is called {name!r}"


def _is_met(prompt: str, check: AnyCheck) -> bool:
    """Return whether an answer that says nothing, or repeats the question, passes a check."""
    inner = check.check if isinstance(check, InFile) else check
    if isinstance(inner, ToolCalled):
        return not inner.least
    if isinstance(check, TextCheck) and check.demands_text:
        with suppress(CheckError):
            return check.check(prompt).passed
    return isinstance(inner, TextCheck) and inner.is_negative


def _prompt(draft: Draft, owner: SkillFolder | None) -> str:
    """Return the prompt, from its file if the case names one."""
    if owner and _PROMPT_FILE.fullmatch(draft.prompt):
        with suppress(Unreadable, OSError):
            (file,) = owner.read_files(draft.prompt)
            if not file.binary and file.text.strip():
                return file.text.strip()
    return draft.prompt


def _read(
    key: str, given: Iterable[WorkspaceFile | Copied], owner: SkillFolder | None
) -> tuple[tuple[WorkspaceFile, ...], list[str]]:
    """Return files of a case by name, and why the case is skipped if some cannot be read."""
    files: dict[str, WorkspaceFile] = {}
    skips: list[str] = []
    for each in given:
        if isinstance(each, WorkspaceFile):
            files[each.name] = each
            continue
        try:
            found = owner.read_copies(each.name, each.source) if owner else ()
        except (Unreadable, OSError) as error:
            skips.append(f"{key}: {error}")
            continue
        if owner and not found and key != "files":
            why = "the arm without the skill must not get them: move them out of its folder"
            skips.append(f"{key}: {each.source!r} has only files of the skill, and {why}")
        files |= {file.name: file for file in found}
    return tuple(files.values()), skips
