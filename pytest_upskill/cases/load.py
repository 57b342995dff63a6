"""Read skills and their cases from disk.

`load_skills` reads one case file, by the reader of its format, and the ``SKILL.md`` of each skill
that its cases belong to.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from os.path import lexists
from pathlib import Path, PurePath

from pytest_upskill import CASE_FILE, CASE_SUFFIXES, LABELS_FILE
from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.adapters.registry import Reading, compared_files
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import SkillFolder, conflicts_in, version_in
from pytest_upskill.cases.skill_md import SkillText, read_skill_text
from pytest_upskill.cases.skill_meta import reader as skill_meta
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.to_cases import CaseMaker, FileCases
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.project.files import leads_out
from pytest_upskill.project.frontmatter import body_of
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import listed

MAX_CASES = 1000
"""Maximum number of cases in a file."""


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


def pooled(skills: Iterable[Skill]) -> list[Skill]:
    """Return the skills of several files, each once for all files of a suite; none is broken.

    What the cases of one file hide of a skill is then hidden from all.
    """
    groups = grouped(((each.suite or each.case_file, each.folder), each) for each in skills)
    return [_whole(same, at) if same[0].suite else same[0] for (at, _), same in groups.items()]


def _whole(files: Sequence[Skill], suite: Path) -> Skill:
    found = [(os.path.relpath(e.case_file, suite), case) for e in files for case in e.cases]
    ids = case_ids([(case.id, "", file) for file, case in found])
    named = zip(ids, found, strict=True)
    cases = tuple(replace(case, id=name, file=file) for name, (file, case) in named)
    hidden, *others = (each.hidden_files for each in files)
    for each in others:
        answers, inputs = hidden.answers | each.answers, hidden.inputs | each.inputs
        hidden = replace(hidden, answers=answers, inputs=inputs)
    whole = replace(files[0], case_file=suite, cases=cases, hidden_files=hidden)
    return version_in(whole.folder, whole)


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
        self._own = discovery.owning_skill(self._path)
        self._problems: list[str] = []
        self._broken: dict[Path, list[str]] = {}
        """The problems of each ``SKILL.md`` that cannot be used."""
        self._text_of = cache(self._read_skill_md)
        self._skill_in = cache(self._read_skill)

    def skills(self) -> list[Skill]:
        """Read everything; raise SkillError if there is any problem, or no usable skill."""
        if self._own is not None:
            self._text_of(self._own)
        file = FileCases()
        with _collected(self._problems, str(self._shown)):
            file = self._read_case_file()
        labels = (file.suite or self._path.parent) / LABELS_FILE
        if lexists(labels):
            # Imported here: most case files have no labels.
            from pytest_upskill.cases.judge_labels import load_labels

            with _collected(self._problems, self._display_name(labels)):
                load_labels(labels.parent)
        owned = zip(file.owners, file.cases, strict=True)
        groups = grouped((skill, skill.without_copies(case)) for skill, case in owned)
        if not groups and self._own is not None and not self._problems:
            groups[self._skill_in(self._own)] = []
        if self._problems or (groups and all(skill.folder in self._broken for skill in groups)):
            raise SkillError("\n".join([*chain(*self._broken.values()), *self._problems]))
        skills = [
            replace(
                self._skill(skill, cases),
                shares_file={each.folder for each in groups} != {self._own},
                labelled=labels.is_file(),
                gate=file.gate,
                suite=file.suite,
            )
            for skill, cases in groups.items()
        ]
        if skills:
            # Only the first skill has the warnings about the cases, so that each appears once.
            warnings, hints = _by_weight([*file.warnings, *_left_out(groups)], str(self._shown))
            skills[0] = replace(
                skills[0],
                read_as=file.read_as,
                warnings=(*skills[0].warnings, *warnings),
                hints=(*skills[0].hints, *hints),
            )
        return skills

    def _skill(self, skill: SkillFolder, cases: Sequence[Case]) -> Skill:
        text, bundle = skill.text, skill.bundle
        problems = [*(replace(each, is_hint=True) for each in text.warnings), *bundle.warnings]
        if cases and text.text and not body_of(text.text).strip():
            what = "no instructions below the frontmatter: write what an agent needs to know"
            problems.append(Problem(what=what))
        warnings, hints = _by_weight(problems, self._display_name(skill.folder / "SKILL.md"))
        return Skill(
            name=text.name,
            description=text.description,
            hidden=text.hidden,
            text=bundle.text,
            folder=skill.folder,
            case_file=self._case_file,
            cases=tuple(cases),
            hidden_files=skill.hidden_files,
            broken="\n".join(self._broken.get(skill.folder, ())),
            warnings=warnings,
            hints=hints,
        )

    def _read_case_file(self) -> FileCases:
        if self._path.name == "SKILL.md":
            return FileCases()
        if self._path.name == CASE_FILE:  # which is in the folder of its skill
            text = self._read(self._path)
            skill = self._skill_in(self._path.parent)
            cases, gate = skill_meta.read_cases(text, skill=skill, extensions=self._extensions)
            file = FileCases(cases=cases, owners=[skill] * len(cases), gate=gate)
        else:
            file = self._read_evals_file()
        if len(file.cases) > MAX_CASES:
            what = f"has {len(file.cases):,} cases; a file may have {MAX_CASES:,}: split it"
            raise BadFile([Problem(what=what)])
        return file

    def _read_evals_file(self) -> FileCases:
        """Read the cases of an evals file, which may name their skills."""
        reading = self._reading
        assert reading is not None
        owner = None if self._own is None else self._skill_in(self._own)
        file = CaseMaker(reading=reading, owner=owner, find=self._find).file()
        if not file.owners and self._own is None:
            reason = file.cases[0].skip if file.cases else "it contains no cases"
            reason = reason or "they name no skill: add 'skill'"
            raise NoSkillError(f"{self._shown}: none of its cases can run: {reason}")
        if reading.adapter in registry.adapters_at(self._path):
            return replace(file, suite=reading.adapter.suite_of(self._path))
        return replace(file, read_as=reading.adapter.tool)

    @cached_property
    def _reading(self) -> Reading | None:
        """The evals file as an adapter reads it; None if the file is another one."""
        if self._path.name in {CASE_FILE, "SKILL.md"}:
            return None
        text = self._read(self._path)
        if self._path.suffix not in CASE_SUFFIXES:
            what = f"cases are read from {', '.join(sorted(CASE_SUFFIXES))} only"
            raise BadFile([Problem(what=what)])
        reading = self._discovery.reading(self._path)
        if reading is None:
            reading = registry.read(self._path, text, anywhere=True)
        if reading is None:
            raise registry.unfit()
        return reading

    def _find(self, name: str) -> SkillFolder | None:
        folder = self._discovery.find_skill(name, self._path)
        return None if folder is None else self._skill_in(folder)

    def _read_skill(self, folder: Path) -> SkillFolder:
        return SkillFolder(
            folder,
            self._text_of(folder),
            self._path,
            patterns=self._discovery.patterns,
            compared=compared_files(self._reading.document) if self._reading else (),
        )

    def _read_skill_md(self, folder: Path) -> SkillText:
        """Read the ``SKILL.md`` of a folder, and collect its problems."""
        problems: list[str] = []
        file = folder / "SKILL.md"
        if file.exists():
            with _collected(problems, self._display_name(file)):
                text = read_skill_text(self._read(file), folder=folder.name)
                if conflicts := [*conflicts_in(text)]:
                    raise BadFile(conflicts)
                return text
        else:
            what = f"no SKILL.md beside {self._path.name}{_cure(folder)}"
            problems.append(f"{self._shown.parent}: {what}")
        self._broken[folder] = problems
        return SkillText(name=folder.name, text="", body_at=0, warnings=())

    def _read(self, path: Path) -> str:
        if target := leads_out(path, self._discovery.root):
            what = (
                f"this link leads outside the project, to {target}: copy the folder, or pass "
                f"it as an argument"
            )
            raise BadFile([Problem(what=what)])
        return read_text(path)

    def _display_name(self, file: Path) -> str:
        return os.path.normpath(self._shown.parent / os.path.relpath(file, self._path.parent))


def _cure(folder: Path) -> str:
    """Return what to do where a ``SKILL.md`` is missing in a folder."""
    for misspelled in folder.glob("[Ss][Kk][Ii][Ll][Ll].[Mm][Dd]"):
        return f": rename {misspelled.name} to SKILL.md"
    if (folder.parent / "SKILL.md").exists():
        return ": move it one folder up, where the SKILL.md is"
    return ": move it beside the SKILL.md of its skill"


def _left_out(skills: Iterable[SkillFolder]) -> Iterator[Problem]:
    """Yield a problem if the files of cases contain a skill."""
    if names := sorted({name for skill in skills for name in skill.left_out}):
        what = "left out of every arm, as the arm without the skill would get it"
        yield Problem(what=f"{what}: {listed(names)}")


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
