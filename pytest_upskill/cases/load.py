"""Read skills and their cases from disk.

`load_skills` reads one case file, by the reader of its format, and the ``SKILL.md`` of each skill
that its cases belong to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from pytest_upskill import CASE_FILE, CASE_SUFFIXES, LABELS_FILE
from pytest_upskill.cases.case_inputs import CaseInputs, answers_in, without_copies
from pytest_upskill.cases.discovery import CaseDiscovery, folder_of_cases
from pytest_upskill.cases.skill import Case, GateRule, HiddenFiles, Skill
from pytest_upskill.cases.skill_files import Bundle, read_bundle
from pytest_upskill.cases.skill_md import SkillText, read_skill_text
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.project.files import leads_out
from pytest_upskill.project.messages import listed

if TYPE_CHECKING:
    from pytest_upskill.cases.adapters.to_cases import Owner

MAX_CASES = 1000
"""Maximum number of cases in a file."""

_SHOWN = 5
"""Maximum number of files that a warning lists."""


class SkillError(Exception):
    """A skill that cannot be run; the message lists every problem of its files, one per line."""


class NoSkillError(SkillError):
    """A file whose cases do not belong to any skill."""


def load_skills(
    case_file: Path,
    *,
    shown: str | None = None,
    extensions: Extensions = NO_EXTENSIONS,
    discovery: CaseDiscovery | None = None,
) -> list[Skill]:
    """Read a case file and every ``SKILL.md`` that its cases belong to.

    Args:
        case_file: A ``skill_meta.json``, an ``evals.json`` or a similar file; or a ``SKILL.md``,
            to read the skill without cases.
        shown: The path to write in messages, such as relative to pytest's root; None for
            ``case_file``.
        extensions: What plugins add to the format.
        discovery: Where to search for skills. A link that leads out of its root, and out of a git
            repository around it, is an error. None to limit the search by git only.

    Returns:
        One skill with all cases, or several skills with their own cases each.

    Raises:
        NoSkillError: No skill is found for any of the cases.
        SkillError: A file has problems; the message lists all of them.
    """
    discovery = discovery or CaseDiscovery()
    return _Loader(case_file, PurePath(shown or case_file), extensions, discovery).skills()


class _CaseFile(NamedTuple):
    """The content of a case file."""

    cases: Sequence[tuple[Path, Case]] = ()
    """The cases, each with the folder of the skill that it belongs to."""
    gate: GateRule = GateRule()
    warnings: Sequence[Problem] = ()
    read_as: str = ""


class _Parts(NamedTuple):
    """What of a skill's folder reaches a model, and what does not."""

    bundle: Bundle
    hidden: HiddenFiles
    inputs: CaseInputs


class _Loader:
    """Reader of one case file, which collects its problems and those of its skills."""

    def __init__(
        self, case_file: Path, shown: PurePath, extensions: Extensions, discovery: CaseDiscovery
    ) -> None:
        self._case_file = case_file
        self._path = case_file.absolute()
        self._shown = shown
        self._extensions = extensions
        self._discovery = discovery
        self._folder = discovery.owning_skill(self._path)
        self._labelled = (self._path.parent / LABELS_FILE).is_file()
        self._texts: dict[Path, SkillText] = {}
        self._parts: dict[Path, _Parts] = {}
        self._compared: Sequence[str] = ()
        self._broken: dict[Path, list[str]] = {}
        """The problems of each ``SKILL.md`` that cannot be used."""
        self._problems: list[str] = []

    def skills(self) -> list[Skill]:
        """Read everything; raise SkillError if there is any problem, or no usable skill."""
        if self._folder is not None:
            self._text_of(self._folder)
        file = _CaseFile()
        with _collected(self._problems, str(self._shown)):
            file = self._read_case_file()
        with _collected(self._problems, str(self._shown.parent / LABELS_FILE)):
            self._check_labels()
        groups: dict[Path, list[Case]] = {}
        for folder, case in file.cases:
            groups.setdefault(folder, []).append(case)
        if not groups and self._folder is not None:
            groups[self._folder] = []
        if self._problems or (groups and self._broken.keys() >= groups.keys()):
            raise SkillError("\n".join([*chain(*self._broken.values()), *self._problems]))
        left_out = self._leave_out_copies(groups)
        warnings, hints = _by_weight([*file.warnings, *left_out], str(self._shown))
        skills = [self._skill(folder, groups, file.gate) for folder in groups]
        if skills:
            # Only the first skill has the warnings about the cases, so that each appears once.
            skills[0] = replace(
                skills[0],
                read_as=file.read_as,
                warnings=(*skills[0].warnings, *warnings),
                hints=(*skills[0].hints, *hints),
            )
        return skills

    def _skill(self, folder: Path, groups: Mapping[Path, Sequence[Case]], gate: GateRule) -> Skill:
        """Return a skill with its cases.

        Args:
            folder: Its folder.
            groups: The cases of all skills of the file, by folder.
            gate: The gate of the file.
        """
        text = self._texts[folder]
        bundle, hidden, inputs = self._parts_of(folder)
        spec_violations = (replace(each, is_hint=True) for each in text.warnings)
        problems = (*spec_violations, *bundle.warnings)
        warnings, hints = _by_weight(problems, self._display_name(folder))
        return Skill(
            name=text.name,
            description=text.description,
            hidden=text.hidden,
            text=bundle.text,
            folder=folder,
            case_file=self._case_file,
            shares_file=set(groups) != {self._folder},
            cases=tuple(groups[folder]),
            hidden_files=replace(hidden, inputs=frozenset(inputs.read)),
            labelled=self._labelled,
            gate=gate,
            broken="\n".join(self._broken.get(folder, ())),
            warnings=warnings,
            hints=hints,
        )

    def _read_case_file(self) -> _CaseFile:
        if self._path.name == "SKILL.md":
            return _CaseFile()
        text = self._read(self._path)
        is_own = self._path.name == CASE_FILE
        file = self._read_skill_meta(text) if is_own else self._read_evals_file(text)
        if len(file.cases) > MAX_CASES:
            what = f"has {len(file.cases):,} cases; a file may have {MAX_CASES:,}: split it"
            raise BadFile([Problem(what=what)])
        return file

    def _read_skill_meta(self, text: str) -> _CaseFile:
        """Read the cases of a ``skill_meta.json``, which is in the folder of its skill."""
        folder = self._path.parent
        cases, gate = read_cases(
            text,
            inputs=self._parts_of(folder).inputs,
            names=(self._text_of(folder).name, folder.name),
            extensions=self._extensions,
        )
        return _CaseFile(cases=[(folder, case) for case in cases], gate=gate)

    def _read_evals_file(self, text: str) -> _CaseFile:
        """Read the cases of an evals file, which may name their skills."""
        # Imported late: most skills have no such file.
        from pytest_upskill.cases.adapters import registry
        from pytest_upskill.cases.adapters.reading import compared_files
        from pytest_upskill.cases.adapters.to_cases import read_cases

        if self._path.suffix not in CASE_SUFFIXES:
            what = f"cases are read from {', '.join(sorted(CASE_SUFFIXES))} only"
            raise BadFile([Problem(what=what)])
        reading = self._discovery.reading(self._path)
        if reading is None:
            reading = registry.read(self._path, text, adapters=registry.ADAPTERS)
        if reading is None:
            raise registry.unfit()
        self._compared = compared_files(reading.document)
        owner = None if self._folder is None else self._owner(self._folder)
        file = read_cases(
            reading, owner=owner, find=self._find, names=lambda: self._discovery.names(self._path)
        )
        if not file.owners and self._folder is None:
            reason = file.cases[0].skip if file.cases else "it contains no cases"
            reason = reason or "they name no skill: add 'skill'"
            raise NoSkillError(f"{self._shown}: none of its cases can run: {reason}")
        cases = [(owner.folder, case) for owner, case in zip(file.owners, file.cases, strict=True)]
        is_placed = reading.adapter in registry.adapters_at(self._path)
        read_as = "" if is_placed else reading.adapter.tool
        return _CaseFile(cases=cases, warnings=file.warnings, read_as=read_as)

    def _leave_out_copies(self, groups: Mapping[Path, list[Case]]) -> list[Problem]:
        """Remove copies of the skill from its cases; return a line if the skill was in some."""
        left_out: set[str] = set()
        for folder, cases in groups.items():
            for index, case in enumerate(cases):
                cases[index], copies = without_copies(case, self._text_of(folder).text)
                left_out.update(copies)
            left_out |= self._parts_of(folder).inputs.left_out
        if not left_out:
            return []
        names = listed(sorted(left_out), _SHOWN)
        what = f"left out of every arm, as the arm without the skill would get it: {names}"
        return [Problem(what=what)]

    def _check_labels(self) -> None:
        if self._labelled:
            # Imported late: most case files have no labels.
            from pytest_upskill.cases.judge_labels import load_labels

            load_labels(self._path.parent)

    def _find(self, name: str) -> Owner | None:
        folder = self._discovery.find_skill(name, self._path)
        return None if folder is None else self._owner(folder)

    def _owner(self, folder: Path) -> Owner:
        from pytest_upskill.cases.adapters.to_cases import Owner

        names = {self._text_of(folder).name, folder.name}
        inputs = self._parts_of(folder).inputs
        return Owner(folder=folder, names=names, read_files=inputs.files)

    def _parts_of(self, folder: Path) -> _Parts:
        """Read what a skill's text puts into the context, and prepare to read inputs of cases."""
        if folder not in self._parts:
            hidden = HiddenFiles(
                folder=folder,
                patterns=self._discovery.patterns,
                answers=answers_in(folder, self._path.parent, [self._path.name, *self._compared]),
            )
            bundle = read_bundle(folder, self._text_of(folder), hidden)
            inputs = CaseInputs(
                folder,
                beside=self._path.parent,
                of_cases=folder_of_cases(self._path, folder),
                in_context=bundle.names,
                hidden=hidden,
            )
            self._parts[folder] = _Parts(bundle, hidden, inputs)
        return self._parts[folder]

    def _text_of(self, folder: Path) -> SkillText:
        """Read the ``SKILL.md`` of a folder once, and collect its problems."""
        if folder not in self._texts:
            # Stays if the file cannot be read, so that its problems are collected only once.
            self._texts[folder] = SkillText(name=folder.name, text="", body_at=0, warnings=())
            problems: list[str] = []
            file = folder / "SKILL.md"
            if file.exists():
                with _collected(problems, self._display_name(folder)):
                    self._texts[folder] = read_skill_text(self._read(file), folder=folder.name)
            else:
                cure = _cure_of_missing(folder)
                problems.append(f"{self._shown.parent}: no SKILL.md beside {self._path.name}{cure}")
            if problems:
                self._broken[folder] = problems
        return self._texts[folder]

    def _read(self, path: Path) -> str:
        if target := leads_out(path, self._discovery.root):
            what = (
                f"this link leads outside the project, to {target}: copy the folder, or pass "
                f"it as an argument"
            )
            raise BadFile([Problem(what=what)])
        return read_text(path)

    def _display_name(self, folder: Path) -> str:
        to_skill = os.path.relpath(folder / "SKILL.md", self._path.parent)
        return os.path.normpath(self._shown.parent / to_skill)


def _cure_of_missing(folder: Path) -> str:
    """Return where the ``SKILL.md`` of a folder may be instead, to follow that it is missing."""
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if misnamed := [name for name in names - {"SKILL.md"} if name.lower() == "skill.md"]:
        return f": rename {misnamed[0]} to SKILL.md"
    if (folder.parent / "SKILL.md").exists():
        return f": move it up into {folder.parent.name}, which has one"
    return " (a skill is a folder with a SKILL.md)"


@contextmanager
def _collected(problems: list[str], path: str) -> Iterator[None]:
    """Collect the problems of a bad file instead of raising."""
    try:
        yield
    except BadFile as error:
        problems += [problem.at(path) for problem in error.problems]


def _by_weight(problems: Iterable[Problem], path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the problems of a file as lines, first those that change a measurement."""
    problems = [*problems]
    warnings = tuple(problem.at(path) for problem in problems if not problem.is_hint)
    return warnings, tuple(problem.at(path) for problem in problems if problem.is_hint)
